//! A peer that is killed at any step, while both sides send, write, read and execute atomics. The
//! survivor's requests all complete within 2 s, with the statuses of the specification. Nothing
//! stays behind, and the next run under the same name is clean.

use bellwire_rdma::{
    Access, Adapter, Attributes, Bytes, Capacity, CqId, Domain, Mask, Operation, QpState,
    QueuePairOptions, SendRequest, Service, Sge, WorkCompletion, WorkOpcode, WorkStatus,
};
use bellwire_testkit::crash::{Residue, steps_in};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

/// What anything may take before it counts as a hang.
const LIMIT: Duration = Duration::from_secs(60);
/// Names the device for the subject.
const DEVICE: &str = "BELLWIRE_TEST_DEVICE";
/// Names how many messages the subject waits for before it ends in order.
const MESSAGES: &str = "BELLWIRE_TEST_MESSAGES";
/// Requests that the subject posts before it ends in order.
const REQUESTS: u64 = 100;
/// Requests that are posted ahead.
const AHEAD: u64 = 12;
/// Bytes of a long message, which the receiver fetches.
const LONG: u32 = 100_000;
/// Memory: what is sent, what is received, and what the peer uses.
const PART: usize = 1 << 17;
const MEMORY: usize = 3 * PART;

/// Tests that count what is open in this process take turns with the others.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sleeps of [`slept`] until a survivor has noticed: 2 s, as docs/verbs.md promises.
const NOTICED: u32 = 200;

/// Sleeps of 10 ms since a first call, by a thread of a lower priority: a clock that a full machine
/// slows down. The protocol's timers add up to less than 2 s. A machine whose processors are busy
/// adds to that after each timer, and that is no fault. This thread waits for a processor at least
/// as long as the survivor does after a timer, so the limit can be too patient, and never too
/// strict. Much lower priorities may wait for seconds.
fn slept() -> u32 {
    static SLEPT: AtomicU32 = AtomicU32::new(0);
    static STARTS: Once = Once::new();
    STARTS.call_once(|| {
        std::thread::spawn(|| {
            // On Linux a priority is a thread's.
            rustix::process::nice(5).expect("it may always be lowered");
            loop {
                std::thread::sleep(Duration::from_millis(10));
                SLEPT.fetch_add(1, Ordering::Relaxed);
            }
        });
    });
    SLEPT.load(Ordering::Relaxed)
}

/// One side, with all that it has posted.
struct Side {
    adapter: Adapter,
    domain: Domain,
    queue: CqId,
    number: u32,
    key: u32,
    memory: Box<[u8]>,
    posted: u64,
    sent: u64,
    receives: u64,
    received: u64,
    statuses: Vec<WorkCompletion>,
}

/// What one side tells the other before they are connected.
#[derive(Clone, Copy)]
struct Card {
    host: u32,
    number: u32,
    key: u32,
    address: u64,
}

impl Card {
    fn parse(line: &str) -> Option<Card> {
        let mut words = line.trim().strip_prefix("card ")?.split(' ');
        let host = words.next()?.parse().ok()?;
        let number = words.next()?.parse().ok()?;
        let key = words.next()?.parse().ok()?;
        Some(Card { host, number, key, address: words.next()?.parse().ok()? })
    }

    fn line(&self) -> String {
        format!("card {} {} {} {}", self.host, self.number, self.key, self.address)
    }
}

fn create(adapter: &mut Adapter, domain: Domain, queue: CqId) -> u32 {
    let capacity =
        Capacity { sends: 64, receives: 64, send_parts: 1, receive_parts: 1, inline_bytes: 64 };
    let options = QueuePairOptions {
        service: Service::ReliableConnection,
        domain,
        send_queue: queue,
        receive_queue: queue,
        shared: None,
        capacity,
        signal_all: true,
        object: 1,
    };
    adapter.create_queue_pair(&options).unwrap()
}

impl Side {
    fn open(device: &str) -> Side {
        let mut adapter = Adapter::open(device).expect("a device");
        let domain = adapter.create_domain().unwrap();
        let queue = adapter.create_queue(1024, None, 0).unwrap();
        let number = create(&mut adapter, domain, queue);
        let mut memory = vec![0; MEMORY].into_boxed_slice();
        let (start, base) = (memory.as_mut_ptr(), memory.as_ptr() as u64);
        let all = Access::LOCAL_WRITE
            | Access::REMOTE_WRITE
            | Access::REMOTE_READ
            | Access::REMOTE_ATOMIC;
        // SAFETY: the memory outlives the adapter, and nothing else uses it meanwhile.
        let key = unsafe { adapter.register(domain, start, MEMORY, base, all) }.unwrap();
        let (posted, sent, receives, received, statuses) = (0, 0, 0, 0, Vec::new());
        Side {
            adapter,
            domain,
            queue,
            number,
            key,
            memory,
            posted,
            sent,
            receives,
            received,
            statuses,
        }
    }

    /// Another queue pair takes the place of the one before.
    fn renew(&mut self) {
        self.adapter.destroy_queue_pair(self.number).unwrap();
        self.number = create(&mut self.adapter, self.domain, self.queue);
        (self.posted, self.sent, self.receives, self.received) = (0, 0, 0, 0);
        self.statuses.clear();
    }

    fn card(&self) -> Card {
        let address = self.memory.as_ptr() as u64;
        Card { host: self.adapter.host().into(), number: self.number, key: self.key, address }
    }

    fn connect(&mut self, peer: Card) {
        let mut new = Attributes {
            state: QpState::Init,
            access: Access::REMOTE_WRITE | Access::REMOTE_READ | Access::REMOTE_ATOMIC,
            qkey: 0,
            host: Some(peer.host.into()),
            peer: peer.number,
            mtu: 5,
            timeout: 14,
            retry_count: 7,
            rnr_retry: 7,
            rnr_timer: 1,
            send_psn: 1,
            receive_psn: 1,
            reads: 4,
            peer_reads: 4,
            pkey_index: 0,
            port: 1,
            drained_event: false,
        };
        let init = Mask::STATE | Mask::PKEY_INDEX | Mask::PORT | Mask::ACCESS;
        self.adapter.modify(self.number, init, &new).unwrap();
        self.top_up();
        new.state = QpState::ReadyToReceive;
        let path = Mask::PATH | Mask::MTU | Mask::PEER | Mask::RECEIVE_PSN;
        let receive = Mask::STATE | path | Mask::PEER_READS | Mask::RNR_TIMER;
        self.adapter.modify(self.number, receive, &new).unwrap();
        new.state = QpState::ReadyToSend;
        let retries = Mask::TIMEOUT | Mask::RETRY_COUNT | Mask::RNR_RETRY | Mask::READS;
        self.adapter.modify(self.number, Mask::STATE | Mask::SEND_PSN | retries, &new).unwrap();
    }

    fn part(&self, part: usize, length: u32) -> Sge {
        let address = self.memory.as_ptr() as u64 + (part * PART) as u64;
        Sge { address, length, key: self.key }
    }

    fn top_up(&mut self) {
        while self.receives - self.received < AHEAD {
            let part = self.part(1, LONG);
            self.adapter.post_receive(self.number, self.receives, &[part]).unwrap();
            self.receives += 1;
        }
    }

    /// Posts the next request: a message, short or long, a write, a read or an atomic.
    fn post(&mut self, peer: Card) {
        let (address, key) = (peer.address + 2 * PART as u64, peer.key);
        let send = Operation::Send { immediate: Some(1), invalidate: None };
        let (operation, length) = match self.posted % 7 {
            0 => (send, 8),
            1 => (Operation::Write { address, key, immediate: None }, 64),
            2 => (send, LONG),
            3 => (Operation::Read { address, key }, 4096),
            4 => (Operation::FetchAdd { address, key, operand: 1 }, 8),
            5 => (Operation::Write { address, key, immediate: Some(7) }, LONG),
            _ => (Operation::CompareSwap { address, key, expected: 0, new: 1 }, 8),
        };
        let part = self.part(0, length);
        let request = SendRequest {
            id: self.posted,
            operation,
            bytes: Bytes::Listed(&[part]),
            signaled: true,
            solicited: false,
            fence: false,
            to: None,
        };
        self.adapter.post_send(self.number, &request).unwrap();
        self.posted += 1;
    }

    fn take(&mut self) {
        while let Some(done) = self.adapter.poll(self.queue) {
            // Requests complete in the order of posting, receives too. After an error its
            // operation does not count.
            let is_receive =
                matches!(done.opcode, WorkOpcode::Receive | WorkOpcode::ReceiveWriteImmediate);
            let count = if is_receive { &mut self.received } else { &mut self.sent };
            assert_eq!(done.id, *count, "{done:?}");
            *count += 1;
            self.statuses.push(done);
        }
    }

    fn state(&self) -> QpState {
        self.adapter.query(self.number).unwrap().0.state
    }

    fn close(self) {
        let Side { mut adapter, domain, queue, number, key, memory, .. } = self;
        adapter.destroy_queue_pair(number).unwrap();
        let deadline = Instant::now() + LIMIT;
        // Something of the peer may still use it.
        while let Err(error) = adapter.deregister(key) {
            assert!(Instant::now() < deadline, "{error}");
            adapter.look();
        }
        adapter.destroy_queue(queue).unwrap();
        adapter.destroy_domain(domain).unwrap();
        adapter.leave();
        drop(adapter);
        drop(memory);
    }
}

/// The subject: connects, works and ends, unless it is killed before.
#[test]
#[ignore = "a child of `a_peer_that_is_killed` runs it"]
fn plays_the_subject() {
    let mut side = Side::open(&std::env::var(DEVICE).expect("the name of a device"));
    println!("\n{}", side.card().line());
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    let peer = Card::parse(&line).expect("the survivor's card");
    side.connect(peer);
    let deadline = Instant::now() + LIMIT;
    let messages = std::env::var(MESSAGES).map_or(0, |count| count.parse().expect("a number"));
    let is_done = |side: &Side| side.sent == REQUESTS && side.received >= messages;
    while !is_done(&side) && side.state() != QpState::Error {
        assert!(Instant::now() < deadline, "{} requests ended", side.sent);
        if side.posted - side.sent < AHEAD && side.posted < REQUESTS {
            side.post(peer);
        }
        side.take();
        if side.state() != QpState::Error {
            side.top_up();
        }
    }
    side.close();
}

/// Starts the subject, which kills itself at a passage of a step.
fn start(device: &str, step: &str, count: u32) -> Child {
    subject(device).env("BELLWIRE_STEP", format!("{step}:{count}:kill")).spawn().unwrap()
}

fn subject(device: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "plays_the_subject", "--ignored", "--nocapture"])
        .env(DEVICE, device)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// One run. Returns whether the subject came to the step, and after how many sleeps the survivor
/// noticed.
fn survive(device: &str, step: &str, count: u32) -> (bool, u32) {
    let mut side = Side::open(device);
    let mut child = start(device, step, count);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let card = lines.by_ref().map_while(Result::ok).find_map(|line| Card::parse(&line));
    if let Some(peer) = card {
        let mut input = child.stdin.take().unwrap();
        let _ = writeln!(input, "{}", side.card().line());
        drop(input);
        side.connect(peer);
        let has_ended = || child.try_wait().unwrap().is_some();
        let noticed = notices(&mut side, Some(peer), has_ended);
        let noticed = noticed.unwrap_or_else(|| panic!("{step}:{count}: not within 2 s"));
        let deadline = Instant::now() + LIMIT;
        // All that was posted completes, and what comes later is flushed at once.
        side.post(peer);
        while side.sent < side.posted || side.received < side.receives {
            side.take();
            assert!(Instant::now() < deadline, "{step}: {} of {}", side.sent, side.posted);
        }
        check(&side, step);
        let killed = ended(child);
        side.close();
        return (killed, noticed);
    }
    let killed = ended(child);
    side.close();
    (killed, 0)
}

/// Works with the peer, or only receives, until the queue pair fails. Returns the sleeps since the
/// peer has ended; `None`: there were too many.
fn notices(
    side: &mut Side,
    peer: Option<Card>,
    mut has_ended: impl FnMut() -> bool,
) -> Option<u32> {
    let deadline = Instant::now() + LIMIT;
    let mut gone = None;
    while side.state() != QpState::Error {
        if let Some(peer) = peer.filter(|_| side.posted - side.sent < AHEAD) {
            side.post(peer);
        }
        side.take();
        if side.state() != QpState::Error {
            side.top_up();
        }
        if gone.is_none() && has_ended() {
            gone = Some(slept());
        }
        if gone.is_some_and(|gone| slept() - gone > NOTICED) {
            return None;
        }
        assert!(gone.is_some() || Instant::now() < deadline, "the peer neither ends nor fails");
    }
    Some(gone.map_or(0, |gone| slept() - gone))
}

/// A peer that is only stopped has not ended, and who waits for it learns nothing: the limit is
/// seen to be over.
#[test]
fn a_peer_that_is_stopped_is_not_noticed() {
    use rustix::process::{Pid, Signal, kill_process};
    let _turn = turn();
    let device = format!("shm:rdma-stopped-{}", std::process::id());
    let mut side = Side::open(&device);
    // It stays until messages come that never will.
    let mut child = subject(&device).env(MESSAGES, "1000").spawn().unwrap();
    meet(&mut side, &mut child);
    let deadline = Instant::now() + LIMIT;
    while side.received < 20 {
        side.take();
        side.top_up();
        assert!(Instant::now() < deadline, "{}", side.received);
    }
    kill_process(Pid::from_child(&child), Signal::STOP).unwrap();
    assert_eq!(notices(&mut side, None, || true), None);
    child.kill().unwrap();
    let noticed = notices(&mut side, None, || true);
    assert!(noticed.is_some(), "its end is noticed");
    assert!(ended(child));
    side.close();
}

/// Reads the subject's card and tells it the own one, and connects with it.
fn meet(side: &mut Side, child: &mut Child) -> Card {
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let card = output.by_ref().lines().map_while(Result::ok).find_map(|line| Card::parse(&line));
    let peer = card.expect("the subject's card");
    // The subject goes on to write.
    child.stdout = Some(output.into_inner());
    writeln!(child.stdin.take().unwrap(), "{}", side.card().line()).unwrap();
    side.connect(peer);
    peer
}

/// A process has the address of one that was killed before. This side, which stays, has not noticed
/// the end of that one when it connects with the new one. All requests of both succeed.
#[test]
fn the_address_of_one_that_was_killed() {
    let _turn = turn();
    let [.., a, b] = std::process::id().to_be_bytes();
    let shm = format!("shm:rdma-again-{}", std::process::id());
    for device in [shm, format!("udp:127.{}.{b}.2", a | 128)] {
        let mut side = Side::open(&device);
        let deadline = Instant::now() + LIMIT;
        for round in 0..3 {
            let mut first = subject(&device).spawn().unwrap();
            let peer = meet(&mut side, &mut first);
            while side.received < 20 {
                side.take();
                side.top_up();
                assert!(Instant::now() < deadline, "{device} {round}: {}", side.received);
            }
            first.kill().unwrap();
            ended(first);
            side.renew();
            // It stays until the last request of this side, which is a message.
            let mut second = subject(&device).env(MESSAGES, "22").spawn().unwrap();
            let again = meet(&mut side, &mut second);
            assert_eq!(peer.host, again.host);
            // In some rounds this side is the first to send.
            while second.try_wait().unwrap().is_none() || side.sent < REQUESTS / 2 {
                if side.posted < REQUESTS / 2 && (round == 1 || side.received > 0) {
                    side.post(again);
                }
                side.take();
                side.top_up();
                assert!(Instant::now() < deadline, "{device} {round}: {}", side.sent);
            }
            let failed = side.statuses.iter().find(|done| done.status != WorkStatus::Success);
            assert_eq!(failed, None, "{device} {round}");
            assert!(side.received >= REQUESTS / 7 * 3, "{device} {round}: {}", side.received);
            assert!(!ended(second), "{device} {round}");
            side.renew();
        }
        side.close();
    }
}

/// Whether the child was killed. It must not fail by itself.
fn ended(mut child: Child) -> bool {
    use std::os::unix::process::ExitStatusExt;
    let status = child.wait().unwrap();
    assert!(status.success() || status.signal() == Some(libc::SIGKILL), "{status}");
    status.signal().is_some()
}

/// Requests succeed, then one fails because the peer is gone, then all are flushed. Receives
/// succeed until they are flushed.
fn check(side: &Side, step: &str) {
    let (receives, sends): (Vec<&WorkCompletion>, Vec<&WorkCompletion>) =
        side.statuses.iter().partition(|done| done.opcode as u32 >= 128);
    let after = |list: &[&WorkCompletion]| -> Vec<WorkCompletion> {
        list.iter()
            .map(|done| **done)
            .skip_while(|done| done.status == WorkStatus::Success)
            .collect()
    };
    let is_flushed = |done: &WorkCompletion| done.status == WorkStatus::Flushed;
    let (sends, receives) = (after(&sends), after(&receives));
    assert!(receives.iter().all(is_flushed), "{step}: {receives:?}");
    let (first, rest) = sends.split_first().expect("the last one fails");
    let is_known = first.status == WorkStatus::RetryExceeded || is_flushed(first);
    assert!(is_known, "{step}: {first:?}");
    assert!(rest.iter().all(is_flushed), "{step}: {rest:?}");
}

/// Killed at the first and at a later passage of every step, over shared memory: the survivor's
/// requests complete, nothing is left of either, and the next run is clean.
#[test]
fn a_peer_that_is_killed() {
    let job = format!("rdma-killed-{}", std::process::id());
    at_every_step(&job, &format!("shm:{job}"), &[1, 5]);
}

/// The same over UDP, where the peer's host says that it has gone.
#[test]
fn a_peer_that_is_killed_over_udp() {
    let [.., a, b] = std::process::id().to_be_bytes();
    at_every_step("none", &format!("udp:127.{}.{b}.1", a | 128), &[1]);
}

fn at_every_step(job: &str, device: &str, counts: &[u32]) {
    let _turn = turn();
    // Whatever a first run leaves in this process is the same in all.
    survive(device, "none", 1);
    let before = Residue::count(job);
    let steps = steps_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(steps.len() >= 15, "{steps:?}");
    let mut reached = BTreeSet::new();
    let mut longest = 0;
    for step in &steps {
        for &count in counts {
            let (killed, noticed) = survive(device, step, count);
            if killed {
                reached.insert(step.clone());
            }
            longest = longest.max(noticed);
            assert_eq!(Residue::count(job), before, "{step}:{count} left something");
        }
    }
    println!("{device}: the survivor noticed after {longest} sleeps of 10 ms at most");
    assert_eq!(reached, steps, "steps that the subject does not come to");
}
