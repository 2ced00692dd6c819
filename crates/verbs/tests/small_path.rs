//! The path of a small message neither allocates nor makes a system call.

use bellwire::{Address, CompletionQueue, Device, Function, Message, QueuePair, QueuePairOptions};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Counts the allocations of the current thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all calls go to the system allocator; counting touches no memory that it manages.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
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

/// Two nodes in one thread, with receives posted.
struct Pair {
    sides: Vec<(Device, Function, CompletionQueue, QueuePair)>,
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
        Pair { sides: vec![side(0), side(1)] }
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

/// After set-up, sending and receiving small messages allocates nothing, for any number of
/// messages.
#[test]
fn a_small_message_allocates_nothing() {
    let mut pair = Pair::new("allocations");
    // Set-up: the link, the first grants, and every extent's first use.
    for number in 0..20_000 {
        pair.exchange(number);
    }
    let before = ALLOCATIONS.with(Cell::get);
    let mut most_in_one = 0;
    for number in 20_000..40_000 {
        let at = ALLOCATIONS.with(Cell::get);
        pair.exchange(number);
        most_in_one = most_in_one.max(ALLOCATIONS.with(Cell::get) - at);
    }
    let total = ALLOCATIONS.with(Cell::get) - before;
    // The device's look at its control sockets, about once a millisecond, may use the heap; a
    // message may not.
    assert!(total < 20_000 / 4, "{total} allocations in 20,000 messages, {most_in_one} in one");
}

/// The counter counts: a canary for the test above.
#[test]
fn the_counting_allocator_counts() {
    let before = ALLOCATIONS.with(Cell::get);
    drop(std::hint::black_box(vec![1_u8; 100]));
    assert!(ALLOCATIONS.with(Cell::get) > before);
}

const CHILD: &str = "BELLWIRE_SMALL_PATH_CHILD";

/// No system call is made from post to completion (C-12). The kernel kills the test's child at any
/// call except a few. These are its exit, and the device's rare look at its control sockets (one
/// `epoll_wait`, one write of its snapshot, memory for both).
// shows: C-12
#[test]
fn a_small_message_makes_no_system_call() {
    if let Ok(mode) = std::env::var(CHILD) {
        exchange_under_watch(&mode);
    }
    let run = |mode: &str| {
        std::process::Command::new(std::env::current_exe().expect("we run"))
            .args(["--exact", "a_small_message_makes_no_system_call", "--test-threads=1"])
            .env(CHILD, mode)
            .output()
            .expect("we can be started again")
    };
    let output = run("messages");
    assert!(
        output.status.success(),
        "{:?}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    // The canary: a child that makes one other call is killed.
    let canary = run("canary");
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(canary.status.signal(), Some(libc::SIGSYS), "{:?}", canary.status);
}

/// The child's part: sets up, forbids itself all other system calls, and exchanges messages.
fn exchange_under_watch(mode: &str) -> ! {
    let mut pair = Pair::new(mode);
    for number in 0..1_000 {
        pair.exchange(number);
    }
    allow_only(&[
        libc::SYS_epoll_wait,
        libc::SYS_epoll_pwait,
        libc::SYS_pwrite64,
        libc::SYS_exit_group,
        // The heap's calls, because the rare look may allocate. The other test shows that a message
        // does not.
        libc::SYS_brk,
        libc::SYS_mmap,
        libc::SYS_munmap,
        libc::SYS_mprotect,
        libc::SYS_madvise,
    ]);
    if mode == "canary" {
        // SAFETY: a call without effect; the kernel kills us for it.
        unsafe { libc::syscall(libc::SYS_getppid) };
    }
    for number in 1_000..200_000 {
        pair.exchange(number);
    }
    // SAFETY: ends the process without running anything that would need a system call.
    unsafe { libc::syscall(libc::SYS_exit_group, 0) };
    unreachable!("exit_group does not return")
}

/// Asks the kernel to kill this process at any other system call.
fn allow_only(calls: &[libc::c_long]) {
    const LOAD_NUMBER: u16 = 0x20; // BPF_LD | BPF_W | BPF_ABS
    const JUMP_EQUAL: u16 = 0x15; // BPF_JMP | BPF_JEQ | BPF_K
    const RETURN: u16 = 0x06; // BPF_RET | BPF_K
    let instruction = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut program = vec![instruction(LOAD_NUMBER, 0, 0, 0)];
    for (place, &call) in calls.iter().enumerate() {
        let to_allow = (calls.len() - place) as u8;
        program.push(instruction(JUMP_EQUAL, to_allow, 0, call as u32));
    }
    program.push(instruction(RETURN, 0, 0, libc::SECCOMP_RET_KILL_PROCESS));
    program.push(instruction(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: plain flags, and a filter program that lives until the call has copied it.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter), 0);
    }
}
