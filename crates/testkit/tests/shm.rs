//! The shared-memory device does what every device must do, by each way to a peer's memory: mapped,
//! copied by the kernel (cross-memory attach), and by packets where the kernel refuses to copy.

use bellwire::{Address, Get, Inbox, Message, Put, QueuePair, Rights, View};
use bellwire_testkit::conformance::bytes::pattern;
use bellwire_testkit::conformance::stage::{A, B};
use bellwire_testkit::conformance::{self, Patience, Stage};
use bellwire_testkit::mapping;
use bellwire_testkit::ways::{Shm, regions};

/// Peers' memory is mapped, or copied by the kernel.
fn shm() -> Shm {
    Shm::attaching()
}

/// The same for a thread that the kernel refuses to copy for.
fn refused() -> Shm {
    refuse(&[libc::SYS_process_vm_readv, libc::SYS_process_vm_writev]);
    Shm::refused()
}

bellwire_testkit::conformance_tests!(shm);
bellwire_testkit::conformance_host_tests!(shm);

/// Memory that programs bring, without the kernel's copies.
mod by_packet {
    use super::{conformance, refused};

    #[test]
    fn messages() {
        conformance::run(conformance::message::every_size_and_memory, &refused());
    }

    #[test]
    fn puts() {
        conformance::run(conformance::onesided::put_every_size_and_memory, &refused());
    }

    #[test]
    fn gets() {
        conformance::run(conformance::onesided::get_every_size_and_memory, &refused());
    }

    #[test]
    fn chains() {
        conformance::run(conformance::onesided::chains_are_cut_anew, &refused());
    }
}

/// Makes these calls fail in this thread with EPERM from now on, as a sandbox does.
fn refuse(calls: &[libc::c_long]) {
    let step = |code: u32, yes: u8, no: u8, k: u32| {
        let code = code as u16;
        libc::sock_filter { code, jt: yes, jf: no, k }
    };
    let mut program = vec![step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0)];
    for &call in calls {
        let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        let refusal = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
        program.push(step(equal, 0, 1, call as u32));
        program.push(step(libc::BPF_RET | libc::BPF_K, 0, 0, refusal));
    }
    program.push(step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW));
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: plain flags, and a filter program that lives until the call has copied it.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &filter), 0);
    }
}

/// A put and a get on memory that the library allocated, and on memory that the program brings.
/// Returns how the initiator reached either, and how many accesses the target's engine served.
fn ways(shm: &Shm) -> ([[u64; 3]; 2], u64) {
    const BYTES: usize = 5_000;
    let mut stage = Stage::pair(shm);
    let rights = Rights::REMOTE_READ | Rights::REMOTE_WRITE;
    let target = &mut stage.nodes[B].function;
    let regions_there = [
        target.allocate_region(BYTES, rights).expect("room"),
        target.register(vec![0; BYTES], rights).expect("room"),
    ];
    let pair = stage.nodes[A].queue_pair;
    let mut reached = [[0; 3]; 2];
    for (number, region) in regions_there.iter().enumerate() {
        let before = regions(&stage.nodes[A]);
        let (bytes, there) = (pattern(9, BYTES), region.remote_key().slice(0, BYTES as u64));
        let put = Put::new(bytes.clone(), there);
        stage.nodes[A].function.post_put(pair, put).expect("room");
        stage.success(A);
        stage.nodes[A].function.post_get(pair, Get::new(there, vec![0; BYTES])).expect("room");
        let back = stage.success(A).buffer.expect("its buffer").into_bytes(BYTES);
        assert!(back == bytes, "it comes back as it was put");
        let after = regions(&stage.nodes[A]);
        reached[number] = std::array::from_fn(|way| after[way] - before[way]);
    }
    let served = stage.nodes[B].counters().function;
    (reached, served.served_puts + served.served_gets)
}

/// Memory that the library allocated is mapped. Memory that the program brings is copied by the
/// kernel, and by packets where the kernel refuses. The device tells which.
#[test]
fn each_kind_of_memory_has_its_way() {
    const MAPPED: [u64; 3] = [1, 0, 0];
    assert_eq!(ways(&shm()), ([MAPPED, [0, 1, 0]], 0));
    let (reached, served) = ways(&refused());
    assert_eq!(reached, [MAPPED, [0, 0, 1]]);
    assert!(served >= 2, "{served}");
}

/// Notes where messages lie that it is shown.
struct Places(Vec<usize>);

impl Inbox for Places {
    fn message(&mut self, _: QueuePair, _: Address, _: Option<u64>, view: View<'_>) -> bool {
        self.0.push(view.as_ptr() as usize);
        true
    }
}

/// A message that is shown in place lies in memory that the sender wrote: the function's pool, or
/// the pair's memory.
#[test]
fn messages_are_shown_where_they_were_written() {
    let shm = shm();
    let mut stage = Stage::pair(&shm);
    let (pair, to) = (stage.nodes[A].queue_pair, stage.nodes[B].address());
    let mut places = Places(Vec::new());
    for number in 0..2_000_usize {
        let send = Message::buffer(pattern(7, number % 200)).to(to).unsignaled();
        stage.nodes[A].function.post_send(pair, send).expect("room");
        let mut patience = Patience::new();
        while places.0.len() <= number {
            stage.nodes[A].function.progress().expect("progress");
            let node = &mut stage.nodes[B];
            let done = node.function.poll_with(node.completions, &mut places).expect("a queue");
            assert!(done.is_none(), "{done:?}");
            patience.spend(|| format!("message {number} is not shown"));
        }
        let mapping = mapping::of(places.0[number]);
        let shared = ["memfd:bellwire pool", "memfd:bellwire pair"];
        assert!(shared.iter().any(|name| mapping.contains(name)), "{mapping}");
    }
}
