//! The path of a small message, a small put and an empty poll neither allocates nor makes a system
//! call. Both are counted for all threads of a process.

use bellwire::{
    Address, CompletionQueue, Device, Function, MemoryRegion, Message, Put, QueuePair,
    QueuePairOptions, Rights,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Counts the allocations of all threads.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// Relaxed, here and below: counters of one thread, or read when the others rest.

fn allocations() -> u64 {
    ALLOCATIONS.load(Ordering::Relaxed)
}

// SAFETY: all calls go to the system allocator; counting touches no memory that it manages.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Two nodes in one thread, with receives posted, and memory of side 1 for puts.
struct Pair {
    sides: Vec<(Device, Function, CompletionQueue, QueuePair)>,
    target: MemoryRegion,
}

const RECEIVES: u64 = 64;

impl Pair {
    fn new(name: &str) -> Pair {
        let job = format!("shm:small-path-{name}-{}", std::process::id());
        let side = |node: u32| {
            let device = Device::open(&format!("{job}?node={node}")).expect("the job is ours");
            let mut function = device.open_function(0).expect("a function");
            let queue = function.create_completion_queue(512).expect("a queue");
            let queue_pair =
                function.create_queue_pair(&QueuePairOptions::new(queue)).expect("a queue pair");
            for context in 0..RECEIVES {
                function.post_receive(queue_pair, vec![0; 64], context).expect("room");
            }
            (device, function, queue, queue_pair)
        };
        let mut sides = vec![side(0), side(1)];
        let target = sides[1].1.allocate_region(4096, Rights::REMOTE_WRITE).expect("room");
        Pair { sides, target }
    }

    /// One put from side 0 to the memory of side 1.
    fn put(&mut self, number: u64) {
        let there = self.target.remote_key().slice(8 * (number % 512), 8);
        let (_, from, completions, qp) = &mut self.sides[0];
        let completions = *completions;
        from.post_put(*qp, Put::inline(&number.to_le_bytes(), there)).expect("room");
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            if let Some(done) = self.sides[0].1.poll(completions).expect("a queue") {
                assert!(done.status.is_success());
                break;
            }
            assert!(Instant::now() < deadline, "put {number} does not end");
            // Side 1 answers the question for its memory.
            self.sides[1].1.progress().expect("the same process");
            self.sides[0].1.progress().expect("the same process");
        }
        let mut found = [0; 8];
        self.target.read(8 * (number as usize % 512), &mut found);
        assert_eq!(u64::from_le_bytes(found), number);
    }

    /// Polls that find nothing.
    fn poll_in_vain(&mut self) {
        for (_, function, completions, _) in &mut self.sides {
            assert!(function.poll(*completions).expect("a queue").is_none());
        }
    }

    /// A message, a put, and empty polls.
    fn everything(&mut self, number: u64) {
        self.exchange(number);
        self.put(number);
        self.poll_in_vain();
    }

    /// One message from side 0 to side 1, and its receive posted again.
    fn exchange(&mut self, number: u64) {
        let [(_, from, sent, qp), (_, to, received, to_qp)] = &mut self.sides[..] else {
            unreachable!("two sides")
        };
        let peer = Address::new(1, 0, to_qp.number);
        from.post_send(*qp, Message::inline(&number.to_le_bytes()).to(peer)).expect("room");
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut done = None;
        while done.is_none() {
            assert!(Instant::now() < deadline, "message {number} did not come");
            from.progress().expect("the same process");
            done = to.poll(*received).expect("a queue");
        }
        let done = done.expect("looked at above");
        let buffer = done.buffer.expect("a receive has one").into_vec().expect("as posted");
        assert_eq!(buffer[..8], number.to_le_bytes());
        to.post_receive(*to_qp, buffer, 0).expect("room");
        let completion = from.poll(*sent).expect("a queue").expect("the message is gone");
        assert!(completion.status.is_success());
    }
}

/// Names what a child of the test below does beside its messages.
const CHILD: &str = "BELLWIRE_SMALL_PATH_CHILD";
/// A child with a system call or an allocation that should not be ends with this.
const CAUGHT: i32 = 3;

/// After set-up, messages, puts and empty polls make no system call (C-12) and allocate nothing, in
/// all threads of a process. The snapshots that they write meanwhile are counted, too.
// shows: C-12
#[test]
fn small_messages_and_puts_take_no_system_call_and_no_allocation() {
    if let Ok(mode) = std::env::var(CHILD) {
        watched(&mode);
    }
    let run = |mode: &str| {
        std::process::Command::new(std::env::current_exe().expect("we run"))
            .args(["--exact", "small_messages_and_puts_take_no_system_call_and_no_allocation"])
            .args(["--test-threads=1", "--nocapture"])
            .env(CHILD, mode)
            .output()
            .expect("we can be started again")
    };
    let output = run("nothing");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The canaries: each adds one thing, and the child notices it.
    for mode in ["one call", "one call of another thread", "a call at every poll", "one allocation"]
    {
        let output = run(mode);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(CAUGHT), "{mode}: {said}");
    }
}

/// The child's part: sets up, has all system calls counted, and exchanges messages.
fn watched(mode: &str) -> ! {
    const ROUNDS: u64 = 100_000;
    let mut pair = Pair::new(&mode.replace(' ', "-"));
    static CALL: AtomicBool = AtomicBool::new(false);
    let other = || {
        while !CALL.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        // SAFETY: a call without effect.
        unsafe { libc::getppid() };
        CALL.store(false, Ordering::Relaxed);
        // Its end would make further calls.
        loop {
            std::hint::spin_loop();
        }
    };
    if mode == "one call of another thread" {
        std::thread::spawn(other);
    }
    // Set-up: the link, the first grants, every extent's first use, and the first snapshots.
    let since = Instant::now();
    let mut number = 0;
    while number < 20_000 || since.elapsed() < Duration::from_millis(500) {
        pair.everything(number);
        number += 1;
    }
    for (place, (_, function, ..)) in pair.sides.iter().enumerate() {
        let ways = function.counters().device;
        assert!(ways.contains(&("watched", 1)), "{ways:?}");
        assert!(ways.contains(&("regions_mapped", 1 - place as u64)), "{ways:?}");
    }
    count_calls();
    let before = allocations();
    let since = Instant::now();
    // Long enough for several snapshots of each function.
    for round in
        (0..).take_while(|&round| round < ROUNDS || since.elapsed() < Duration::from_millis(300))
    {
        pair.everything(number + round);
        if mode == "a call at every poll" {
            // Not one that gives the processor away: beside others that takes milliseconds.
            // SAFETY: a call without effect.
            unsafe { libc::getppid() };
        }
        if round == ROUNDS / 2 {
            match mode {
                // SAFETY: a call without effect.
                "one call" => drop(unsafe { libc::getppid() }),
                "one call of another thread" => {
                    CALL.store(true, Ordering::Relaxed);
                    while CALL.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                }
                "one allocation" => drop(std::hint::black_box(Box::new(round))),
                _ => {}
            }
        }
    }
    let took = since.elapsed();
    let allocated = allocations() - before;
    let calls = CALLS.load(Ordering::Relaxed);
    let said = format!(
        "{ROUNDS} rounds in {took:?}: {allocated} allocations, {calls} system calls, the last one \
         number {}\n",
        LAST_CALL.load(Ordering::Relaxed)
    );
    let status = if calls == 0 && allocated == 0 { 0 } else { CAUGHT };
    // SAFETY: writes a string that is there, and ends the process without running anything else.
    unsafe {
        libc::syscall(libc::SYS_write, 2, said.as_ptr(), said.len(), 0, 0, UNCOUNTED);
        libc::syscall(libc::SYS_exit_group, status);
    }
    unreachable!("exit_group does not return")
}

/// System calls, and the number of the last one.
static CALLS: AtomicU64 = AtomicU64::new(0);
static LAST_CALL: AtomicI32 = AtomicI32::new(-1);

/// As sixth argument of a system call, it marks one that is not counted.
const UNCOUNTED: u64 = 0x62_77_6c_6c;

/// Counts every further system call of all threads of this process. The kernel raises SIGSYS
/// instead of each one, and the handler carries it out.
fn count_calls() {
    const SIXTH: u32 = 16 + 5 * 8;
    let step = |code: u32, yes: u8, no: u8, k: u32| {
        let code = code as u16;
        libc::sock_filter { code, jt: yes, jf: no, k }
    };
    let load = libc::BPF_LD | libc::BPF_W | libc::BPF_ABS;
    let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
    let mut program = [
        step(load, 0, 0, SIXTH),
        step(equal, 4, 0, UNCOUNTED as u32),
        step(load, 0, 0, 0),
        step(equal, 2, 0, libc::SYS_exit_group as u32),
        step(equal, 1, 0, libc::SYS_rt_sigreturn as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_TRAP),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: a handler with the arguments that SA_SIGINFO demands; a filter program that lives
    // until the call has copied it.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = counted as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_NODEFER;
        assert_eq!(libc::sigaction(libc::SIGSYS, &raw const action, std::ptr::null_mut()), 0);
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let (set, all) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_TSYNC);
        assert_eq!(libc::syscall(libc::SYS_seccomp, set, all, &raw const filter), 0);
    }
}

/// Counts one system call and carries it out.
extern "C" fn counted(_: i32, _: *const libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands over the registers of the thread, which are ours until we return;
    // the call is the one that the thread was about to make. errno is saved, as a handler must.
    unsafe {
        let errno = libc::__errno_location();
        let before = *errno;
        let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let number = registers[libc::REG_RAX as usize];
        let [a, b, c, d, e] =
            [libc::REG_RDI, libc::REG_RSI, libc::REG_RDX, libc::REG_R10, libc::REG_R8]
                .map(|register| registers[register as usize]);
        LAST_CALL.store(number as i32, Ordering::Relaxed);
        CALLS.fetch_add(1, Ordering::Relaxed);
        let result = libc::syscall(number, a, b, c, d, e, UNCOUNTED);
        registers[libc::REG_RAX as usize] = if result == -1 { -i64::from(*errno) } else { result };
        *errno = before;
    }
}
