//! Two adapters, each with a queue pair that is connected to the other's, driven by hand.

use super::super::arena::{attributes, limit};
use bellwire_rdma::{
    Access, Adapter, Attributes, Bytes, Capacity, CqId, Domain, Mask, Operation, QpState,
    QueuePairOptions, SendRequest, Service, Sge, SrqId, WorkCompletion,
};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// Bytes of each side's memory.
pub const MEMORY: usize = 1 << 18;
/// Receives of a shared queue.
const SHARED: usize = 16;

pub struct Side {
    pub adapter: Adapter,
    domain: Domain,
    pub queue: CqId,
    pub number: u32,
    pub shared: Option<SrqId>,
    /// The key of all of the memory, for everything.
    pub key: u32,
    /// Freed after the adapter: fields drop in order.
    memory: Box<[u8]>,
}

pub struct Pair {
    pub a: Side,
    pub b: Side,
}

/// A name of a device that no other test has.
pub fn device(kind: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let (process, count) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let [.., a, b] = process.to_be_bytes();
    match kind {
        "udp" => format!("udp:127.{}.{b}.{}", a | 128, 2 + count % 250),
        _ => format!("{kind}:rdma-rules-{process}-{count}"),
    }
}

impl Pair {
    /// Over a device of this kind. `b` has a shared receive queue if it `shares`.
    pub fn new(kind: &str, shares: bool) -> Pair {
        let device = device(kind);
        let (mut a, mut b) = (Side::open(&device, false), Side::open(&device, shares));
        a.connect(&b);
        b.connect(&a);
        Pair { a, b }
    }

    /// Another pair of queue pairs takes the place of the one before, whose numbers are returned.
    pub fn renew(&mut self) -> (u32, u32) {
        let before = (self.a.renew(), self.b.renew());
        self.a.connect(&self.b);
        self.b.connect(&self.a);
        before
    }

    /// Drives both until `condition`.
    pub fn until(&mut self, what: &str, mut condition: impl FnMut(&mut Pair) -> bool) {
        let deadline = Instant::now() + limit();
        while !condition(self) {
            assert!(Instant::now() < deadline, "{what}");
            self.a.adapter.look();
            self.b.adapter.look();
        }
    }

    /// Completions of `a`, at least `count` of them.
    pub fn completions_of_a(&mut self, count: usize) -> Vec<WorkCompletion> {
        let mut done = Vec::new();
        self.until("requests complete", |pair| {
            done.extend(pair.a.take());
            done.len() >= count
        });
        done
    }

    /// `a` learns the key of `b`'s memory by a write of one byte.
    pub fn learn_key(&mut self) {
        let write = self.b.at(MEMORY - 1);
        self.a.post(
            99,
            Operation::Write { address: write, key: self.b.key, immediate: None },
            0,
            1,
        );
        assert_eq!(self.completions_of_a(1)[0].status as u32, 0);
    }
}

impl Side {
    fn open(device: &str, shares: bool) -> Side {
        let mut adapter = Adapter::open(device).unwrap();
        let domain = adapter.create_domain().unwrap();
        let queue = adapter.create_queue(256, None, 0).unwrap();
        let shared = shares.then(|| adapter.create_shared(domain, SHARED, 1, 0, 7).unwrap());
        let number = create(&mut adapter, domain, queue, shared);
        let mut memory = vec![0; MEMORY].into_boxed_slice();
        let (start, base) = (memory.as_mut_ptr(), memory.as_ptr() as u64);
        let all = Access::LOCAL_WRITE | Access::REMOTE_WRITE | Access::REMOTE_READ;
        // SAFETY: the memory outlives the adapter, and only it uses the memory meanwhile.
        let key = unsafe { adapter.register(domain, start, MEMORY, base, all) }.unwrap();
        Side { adapter, domain, queue, number, shared, key, memory }
    }

    fn renew(&mut self) -> u32 {
        let number = create(&mut self.adapter, self.domain, self.queue, self.shared);
        std::mem::replace(&mut self.number, number)
    }

    fn connect(&mut self, peer: &Side) {
        let access = Access::REMOTE_WRITE | Access::REMOTE_READ;
        let mut new = attributes(access, peer.adapter.host(), peer.number);
        let init = Mask::STATE | Mask::PKEY_INDEX | Mask::PORT | Mask::ACCESS;
        let path = Mask::PATH | Mask::MTU | Mask::PEER | Mask::RECEIVE_PSN;
        let receive = path | Mask::PEER_READS | Mask::RNR_TIMER;
        let retries = Mask::TIMEOUT | Mask::RETRY_COUNT | Mask::RNR_RETRY | Mask::READS;
        let states = [
            (QpState::Init, init),
            (QpState::ReadyToReceive, receive),
            (QpState::ReadyToSend, Mask::SEND_PSN | retries),
        ];
        for (state, mask) in states {
            new.state = state;
            self.adapter.modify(self.number, Mask::STATE | mask, &new).unwrap();
        }
    }

    /// Moves the queue pair to the error state.
    pub fn fail(&mut self) {
        let now = self.adapter.query(self.number).unwrap().0;
        let new = Attributes { state: QpState::Error, ..now };
        self.adapter.modify(self.number, Mask::STATE, &new).unwrap();
    }

    /// The address of a byte of the memory.
    pub fn at(&self, offset: usize) -> u64 {
        self.memory.as_ptr() as u64 + offset as u64
    }

    /// A byte of the memory, which the peer may write.
    pub fn byte(&self, offset: usize) -> u8 {
        // SAFETY: the byte is part of the memory.
        unsafe { self.memory.as_ptr().add(offset).read_volatile() }
    }

    /// Sets a byte of the memory.
    pub fn set_byte(&mut self, offset: usize, value: u8) {
        // SAFETY: the byte is part of the memory.
        unsafe { self.memory.as_mut_ptr().add(offset).write_volatile(value) };
    }

    /// Fills the memory, which the program owns again.
    pub fn fill(&mut self, value: u8) {
        for at in 0..MEMORY {
            self.set_byte(at, value);
        }
    }

    /// Posts a request of `length` bytes at `offset`.
    pub fn post(&mut self, id: u64, operation: Operation, offset: usize, length: usize) {
        let part = Sge { address: self.at(offset), length: length as u32, key: self.key };
        let request = SendRequest {
            id,
            operation,
            bytes: Bytes::Listed(&[part]),
            signaled: true,
            solicited: false,
            fence: false,
            to: None,
        };
        self.adapter.post_send(self.number, &request).unwrap();
    }

    /// Posts a message.
    pub fn send(&mut self, id: u64, length: usize) {
        self.post(id, Operation::Send { immediate: None, invalidate: None }, 0, length);
    }

    /// Posts a receive at the begin of the memory.
    pub fn receive(&mut self, id: u64, length: usize) {
        let part = Sge { address: self.at(0), length: length as u32, key: self.key };
        match self.shared {
            Some(shared) => self.adapter.post_shared(shared, id, &[part]).unwrap(),
            None => self.adapter.post_receive(self.number, id, &[part]).unwrap(),
        }
    }

    /// The completions that are there.
    pub fn take(&mut self) -> Vec<WorkCompletion> {
        std::iter::from_fn(|| self.adapter.next(self.queue)).collect()
    }
}

fn create(adapter: &mut Adapter, domain: Domain, queue: CqId, shared: Option<SrqId>) -> u32 {
    let capacity =
        Capacity { sends: 64, receives: 64, send_parts: 1, receive_parts: 1, inline_bytes: 64 };
    let options = QueuePairOptions {
        service: Service::ReliableConnection,
        domain,
        send_queue: queue,
        receive_queue: queue,
        shared,
        capacity,
        signal_all: true,
        object: 1,
    };
    adapter.create_queue_pair(&options).unwrap()
}
