//! A peer that sends anything: it gets no key, changes no memory and ends no adapter.

mod attacks;

use bellwire::{Address, Device, Message, QueuePairOptions, Status};
use bellwire_rdma::{
    Access, Adapter, Attributes, Capacity, CqId, Domain, Mask, QpState, Service, Sge, WorkOpcode,
};
use std::time::{Duration, Instant};

const SEED: u64 = 0x5eed;
const HEAD_BYTES: usize = 32;

/// A small generator, from one seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 24
    }
}

struct Victim {
    adapter: Adapter,
    domain: Domain,
    queue: CqId,
    number: u32,
    /// Freed after the adapter: fields drop in order.
    memory: Vec<u8>,
    key: u32,
}

/// An adapter with a queue pair that is connected to `peer`, receives posted, and memory that the
/// peer may use.
fn victim(job: &str) -> Victim {
    let mut adapter = Adapter::open(job).unwrap();
    let domain = adapter.create_domain().unwrap();
    let queue = adapter.create_queue(1024, None, 0).unwrap();
    let capacity =
        Capacity { sends: 64, receives: 64, send_parts: 4, receive_parts: 4, inline_bytes: 64 };
    let options = bellwire_rdma::QueuePairOptions {
        service: Service::ReliableConnection,
        domain,
        send_queue: queue,
        receive_queue: queue,
        shared: None,
        capacity,
        signal_all: true,
        object: 1,
    };
    let number = adapter.create_queue_pair(&options).unwrap();
    let mut memory = vec![0; 4096];
    let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ;
    let (start, base) = (memory.as_mut_ptr(), memory.as_ptr() as u64);
    // SAFETY: the memory outlives the adapter, and nothing else uses it meanwhile.
    let key = unsafe { adapter.register(domain, start, 4096, base, access) }.unwrap();
    Victim { adapter, domain, queue, number, memory, key }
}

fn connect(victim: &mut Victim, host: std::net::Ipv4Addr, peer: u32) {
    let mut new = Attributes {
        state: QpState::Init,
        access: Access::REMOTE_WRITE | Access::REMOTE_READ,
        qkey: 0,
        host: Some(host),
        peer,
        mtu: 5,
        timeout: 14,
        retry_count: 1,
        rnr_retry: 7,
        rnr_timer: 1,
        send_psn: 5,
        receive_psn: 5,
        reads: 1,
        peer_reads: 1,
        pkey_index: 0,
        port: 1,
        drained_event: false,
    };
    let qp = victim.number;
    let init = Mask::STATE | Mask::PKEY_INDEX | Mask::PORT | Mask::ACCESS;
    victim.adapter.modify(qp, init, &new).unwrap();
    new.state = QpState::ReadyToReceive;
    let path = Mask::PATH | Mask::MTU | Mask::PEER | Mask::RECEIVE_PSN;
    let receive = Mask::STATE | path | Mask::PEER_READS | Mask::RNR_TIMER;
    victim.adapter.modify(qp, receive, &new).unwrap();
    new.state = QpState::ReadyToSend;
    let retries = Mask::TIMEOUT | Mask::RETRY_COUNT | Mask::RNR_RETRY | Mask::READS;
    victim.adapter.modify(qp, Mask::STATE | Mask::SEND_PSN | retries, &new).unwrap();
}

/// Random packets, most of them with heads that are nearly right, from the peer's own function. The
/// victim's only changes are receives that are filled inside their bounds, or flushed.
#[test]
fn random_packets_do_no_harm() {
    println!("seed {SEED}");
    let job = format!("shm:rdma-hostile-{}", std::process::id());
    let mut victim = victim(&job);
    let device = Device::open(&job).unwrap();
    let mut function = device.open_function(0).unwrap();
    let completions = function.create_completion_queue(4096).unwrap();
    let options = QueuePairOptions::new(completions).send_depth(4096);
    let pair = function.create_queue_pair(&options).unwrap();
    let own = function.address();
    let peer = u32::from(own.function) << 16 | 7;
    connect(&mut victim, own.node.into(), peer);
    // The number's upper bits name the victim's function, and the address its node.
    let to = Address::new(u32::from(victim.adapter.host()), (victim.number >> 16) as u8, 1);
    let mut random = Random(SEED);
    let base = victim.memory.as_ptr() as u64;
    let started = Instant::now();
    let (mut packets, mut taken) = (0, 0);
    while packets < 20_000 && started.elapsed() < Duration::from_secs(30) {
        let inside = Sge { address: base + 1024, length: 1024, key: victim.key };
        let _ = victim.adapter.post_receive(victim.number, packets, &[inside]);
        let mut bytes = vec![0; HEAD_BYTES + random.next() as usize % 200];
        for byte in &mut bytes {
            *byte = random.next() as u8;
        }
        // The upper half is the version.
        bytes[0] = 0x10 | (random.next() as u8 % 13);
        let nearly = random.next();
        if !nearly.is_multiple_of(8) {
            bytes[2..5].copy_from_slice(&victim.number.to_le_bytes()[..3]);
            bytes[5..8].copy_from_slice(&peer.to_le_bytes()[..3]);
        }
        if !nearly.is_multiple_of(4) {
            let psn = 5 + (random.next() % 50) as u32;
            bytes[8..12].copy_from_slice(&psn.to_le_bytes());
        }
        if nearly.is_multiple_of(3) {
            bytes[16..20].copy_from_slice(&victim.key.to_le_bytes());
        }
        match function.post_send(pair, Message::inline(&bytes).to(to).unsignaled()) {
            Ok(()) => packets += 1,
            Err(_) => {
                function.progress().unwrap();
            }
        }
        victim.adapter.look();
        while let Some(done) = victim.adapter.poll(victim.queue) {
            taken += 1;
            // The length of a write is the peer's word: the bytes are in memory that it may write.
            let is_message = done.opcode == WorkOpcode::Receive;
            assert!(!is_message || done.length <= 1024, "{done:?}");
        }
        while let Ok(Some(done)) = function.poll(completions) {
            assert_ne!(done.status, Status::ProtocolViolation);
        }
        // A failed queue pair is connected anew, so that later packets reach all its code.
        if victim.adapter.query(victim.number).unwrap().0.state == QpState::Error {
            let reset = victim.adapter.query(victim.number).unwrap().0;
            let reset = Attributes { state: QpState::Reset, ..reset };
            victim.adapter.modify(victim.number, Mask::STATE, &reset).unwrap();
            connect(&mut victim, own.node.into(), peer);
        }
    }
    assert!(packets > 1000 && taken > 100, "{packets} packets gave {taken} completions");
    for (at, byte) in victim.memory.iter().enumerate() {
        assert!((1024..2048).contains(&at) || *byte == 0, "byte {at} was written");
    }
    let Victim { mut adapter, number, key, domain, queue, .. } = victim;
    adapter.destroy_queue_pair(number).unwrap();
    adapter.deregister(key).unwrap();
    adapter.destroy_queue(queue).unwrap();
    adapter.destroy_domain(domain).unwrap();
}

/// Each attack is repelled, and a bystander goes on.
#[test]
fn each_attack_is_repelled() {
    bellwire_testkit::cases::run(&attacks::ATTACKS);
}
