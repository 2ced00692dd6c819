//! A victim, its peer's function, and that of a stranger, all driven by one thread.

use bellwire::{
    Address, CompletionQueue, Device, Function, FunctionAddress, Message, Put, QueuePair,
    QueuePairOptions, RemoteKey, Status,
};
use bellwire_rdma::{
    Access, Adapter, Attributes, Binding, Bytes, Capacity, CqId, Domain, Mask, Operation, QpState,
    SendRequest, Service, Sge, WorkCompletion,
};
use std::time::{Duration, Instant};

/// What anything may take before it counts as a hang, which also shows a planted fault.
pub fn limit() -> Duration {
    let is_planted = std::env::var_os("BELLWIRE_CANARY").is_some();
    Duration::from_secs(if is_planted { 4 } else { 60 })
}
/// The first message number of both directions.
pub const FIRST: u32 = 0x00ff_fffe;
/// Bytes of the victim's memory; the upper half is for receives.
pub const MEMORY: usize = 8192;
/// Where the receives are.
pub const RECEIVES: usize = MEMORY / 2;
/// Bytes of a receive.
pub const RECEIVE: usize = 64;
/// The attacker's queue pairs by place: the one that the victim is connected to, and the one that
/// the bystander is connected to.
const PEER: u32 = 7;
const BYSTANDER: u32 = 9;
/// The Q_Key of datagrams.
pub const Q_KEY: u32 = 0x1234;

/// The version of packets, in the upper half of the opcode's byte.
pub const VERSION: u8 = 1 << 4;

/// Opcodes of packets.
pub mod op {
    pub const SEND: u8 = 1;
    pub const OFFER: u8 = 2;
    pub const WRITE_IMMEDIATE: u8 = 3;
    pub const DATAGRAM: u8 = 4;
    pub const ACK: u8 = 5;
    pub const RESOLVE: u8 = 7;
    pub const RESOLVED: u8 = 8;
    pub const FATAL: u8 = 9;
    pub const PROBE: u8 = 10;
    pub const LEAVE: u8 = 11;
    pub const LIST: u8 = 12;
}

/// Flags of packets.
pub mod flag {
    pub const IMMEDIATE: u8 = 1;
    pub const INVALIDATE: u8 = 4;
    pub const ACKS: u8 = 8;
    pub const PATIENT: u8 = 16;
}

/// A packet, field by field.
#[derive(Clone, Default, Debug)]
pub struct Packet {
    pub opcode: u8,
    pub flags: u8,
    pub syndrome: u8,
    pub to: u32,
    pub from: u32,
    pub psn: u32,
    pub acked: u32,
    pub word: u32,
    pub extra: u64,
    pub body: Vec<u8>,
}

impl Packet {
    /// Messages without a word have a short head.
    fn is_short(&self) -> bool {
        matches!(self.opcode, op::SEND | op::LIST)
            && self.flags & (flag::IMMEDIATE | flag::INVALIDATE) == 0
    }

    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = vec![self.opcode ^ VERSION, self.flags];
        for number in [self.to, self.from] {
            bytes.extend(&number.to_le_bytes()[..3]);
        }
        for word in [self.psn, self.acked] {
            bytes.extend(word.to_le_bytes());
        }
        if !self.is_short() {
            bytes.extend(self.word.to_le_bytes());
            bytes.extend([self.syndrome, 0, 0, 0]);
            bytes.extend(self.extra.to_le_bytes());
        }
        bytes.extend(&self.body);
        bytes
    }

    fn parse(bytes: &[u8]) -> Packet {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let mut packet = Packet {
            opcode: bytes[0] ^ VERSION,
            flags: bytes[1],
            to: word(2) & 0xff_ffff,
            from: word(5) & 0xff_ffff,
            psn: word(8),
            acked: word(12),
            ..Packet::default()
        };
        if packet.is_short() {
            packet.body = bytes[16..].to_vec();
        } else {
            (packet.word, packet.syndrome) = (word(16), bytes[20]);
            packet.extra = u64::from_le_bytes(bytes[24..32].try_into().unwrap());
            packet.body = bytes[32..].to_vec();
        }
        packet
    }
}

/// A function whose packets are written by hand.
pub struct Hand {
    function: Function,
    completions: CompletionQueue,
    pair: QueuePair,
    pub address: FunctionAddress,
    answers: Vec<Packet>,
    results: Vec<(u64, Status)>,
}

impl Hand {
    fn open(device: &Device, number: u8) -> Hand {
        let mut function = device.open_function(number).unwrap();
        let completions = function.create_completion_queue(8192).unwrap();
        let options = QueuePairOptions::new(completions).send_depth(4096).receive_depth(256);
        let pair = function.create_queue_pair(&options).unwrap();
        for _ in 0..256 {
            function.post_receive(pair, vec![0; 256], 0).unwrap();
        }
        let address = function.address();
        let (answers, results) = (Vec::new(), Vec::new());
        Hand { function, completions, pair, address, answers, results }
    }

    /// The number of a queue pair of this function.
    pub fn queue_pair(&self, place: u32) -> u32 {
        u32::from(self.address.function) << 16 | place
    }

    fn look(&mut self) {
        self.function.progress().unwrap();
        while let Some(done) = self.function.poll(self.completions).unwrap() {
            assert_ne!(done.status, Status::ProtocolViolation);
            match done.buffer {
                Some(buffer) if done.operation == bellwire::Operation::Receive => {
                    self.answers.push(Packet::parse(&buffer.view().to_vec()[..done.length]));
                    self.function.post_receive(self.pair, buffer, 0).unwrap();
                }
                _ => self.results.push((done.context, done.status)),
            }
        }
    }

    /// A region of this function, and its key.
    pub fn region(&mut self, length: usize) -> (bellwire::MemoryRegion, RemoteKey) {
        let rights = bellwire::Rights::REMOTE_READ | bellwire::Rights::REMOTE_WRITE;
        let region = self.function.allocate_region(length, rights).unwrap();
        let key = region.remote_key();
        (region, key)
    }
}

/// Everybody.
pub struct Arena {
    pub victim: Adapter,
    pub domain: Domain,
    pub queue: CqId,
    /// A queue pair of the victim that is connected to the attacker's.
    pub number: u32,
    /// Another one, which must go on as if nothing happened.
    bystander: u32,
    bystander_psn: u32,
    bystander_queue: CqId,
    pub attacker: Hand,
    /// Another function, which is nobody's peer.
    pub stranger: Hand,
    psn: u32,
    to: Address,
    next_id: u64,
    /// The key of all of the memory, for local use only.
    own: u32,
    /// Freed after the adapter: fields drop in order.
    memory: Vec<u8>,
    _device: Device,
}

const ALL_REMOTE: Access =
    Access::REMOTE_WRITE.union(Access::REMOTE_READ).union(Access::REMOTE_ATOMIC);

impl Arena {
    /// A queue pair of RC that lets its peer do everything.
    pub fn new() -> Arena {
        Arena::with(Service::ReliableConnection, ALL_REMOTE)
    }

    pub fn with(service: Service, access: Access) -> Arena {
        Arena::tuned(service, access, |_| ())
    }

    /// The queue pair has other attributes than usual.
    pub fn tuned(service: Service, access: Access, tune: impl Fn(&mut Attributes)) -> Arena {
        use std::sync::atomic::{AtomicU32, Ordering};
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let job = format!("shm:rdma-attack-{}-{count}", std::process::id());
        let mut victim = Adapter::open(&job).unwrap();
        let domain = victim.create_domain().unwrap();
        let queue = victim.create_queue(1024, None, 0).unwrap();
        let bystander_queue = victim.create_queue(64, None, 1).unwrap();
        let number = create(&mut victim, service, domain, queue);
        let bystander = create(&mut victim, Service::ReliableConnection, domain, bystander_queue);
        let device = Device::open(&job).unwrap();
        let (attacker, stranger) = (Hand::open(&device, 0), Hand::open(&device, 1));
        let to = Address::new(u32::from(victim.host()), (number >> 16) as u8, 1);
        let mut arena = Arena {
            victim,
            domain,
            queue,
            number,
            bystander,
            bystander_psn: FIRST,
            bystander_queue,
            attacker,
            stranger,
            psn: FIRST,
            to,
            next_id: 0,
            own: 0,
            memory: vec![0; MEMORY],
            _device: device,
        };
        arena.own = arena.register(0, MEMORY, Access::LOCAL_WRITE);
        let host = arena.attacker.address.node.into();
        let mut new = attributes(access, host, arena.attacker.queue_pair(PEER));
        tune(&mut new);
        arena.connect(number, service, new);
        let new = attributes(Access::empty(), host, arena.attacker.queue_pair(BYSTANDER));
        arena.connect(bystander, Service::ReliableConnection, new);
        arena
    }

    /// Registers a part of the memory in the victim's domain.
    pub fn register(&mut self, at: usize, length: usize, access: Access) -> u32 {
        self.register_in(self.domain, at, length, access)
    }

    pub fn register_in(&mut self, domain: Domain, at: usize, length: usize, access: Access) -> u32 {
        assert!(at + length <= MEMORY);
        let base = self.address(at);
        let start = self.memory[at..].as_mut_ptr();
        // SAFETY: the memory outlives the adapter, and only it uses the memory meanwhile.
        unsafe { self.victim.register(domain, start, length, base, access) }.unwrap()
    }

    /// The address of a byte of the memory.
    pub fn address(&self, at: usize) -> u64 {
        self.memory.as_ptr() as u64 + at as u64
    }

    /// A byte of the memory, which peers write.
    pub fn byte(&self, at: usize) -> u8 {
        // SAFETY: the byte is part of the memory.
        unsafe { self.memory.as_ptr().add(at).read_volatile() }
    }

    fn connect(&mut self, number: u32, service: Service, mut new: Attributes) {
        let own = if service == Service::Datagram { Mask::QKEY } else { Mask::ACCESS };
        let init = Mask::STATE | Mask::PKEY_INDEX | Mask::PORT | own;
        self.victim.modify(number, init, &new).unwrap();
        new.state = QpState::ReadyToReceive;
        let path = Mask::PATH | Mask::MTU | Mask::PEER | Mask::RECEIVE_PSN;
        let retries = Mask::TIMEOUT | Mask::RETRY_COUNT | Mask::RNR_RETRY | Mask::READS;
        let (receive, send) = match service {
            Service::ReliableConnection => (path | Mask::PEER_READS | Mask::RNR_TIMER, retries),
            Service::UnreliableConnection => (path, Mask::empty()),
            Service::Datagram => (Mask::empty(), Mask::empty()),
        };
        self.victim.modify(number, Mask::STATE | receive, &new).unwrap();
        new.state = QpState::ReadyToSend;
        self.victim.modify(number, Mask::STATE | Mask::SEND_PSN | send, &new).unwrap();
    }

    /// Posts receives of [`RECEIVE`] bytes.
    pub fn receives(&mut self, count: usize) {
        for _ in 0..count {
            let at = RECEIVES + self.next_id as usize % 32 * RECEIVE;
            let part = Sge { address: self.address(at), length: RECEIVE as u32, key: self.own };
            self.victim.post_receive(self.number, self.next_id, &[part]).unwrap();
            self.next_id += 1;
        }
    }

    /// A valid packet of the attacker's queue pair. Messages are numbered on.
    pub fn packet(&mut self, opcode: u8) -> Packet {
        let psn = self.psn;
        if matches!(opcode, op::SEND | op::OFFER | op::WRITE_IMMEDIATE) {
            self.psn = psn.wrapping_add(1);
        }
        let (to, from) = (self.number, self.attacker.queue_pair(PEER));
        Packet { opcode, to, from, psn, ..Packet::default() }
    }

    /// An offer of keys of the attacker's own function, with lengths of its choice.
    pub fn offer(&mut self, lengths: &[u64]) -> Packet {
        // The region ends with its function.
        let (_, key) = self.attacker.region(4096);
        let keys = lengths.iter().map(|&length| RemoteKey { length, ..key });
        let body = keys.flat_map(|key| key.to_bytes()).collect();
        Packet { body, ..self.packet(op::OFFER) }
    }

    /// Sends bytes from the attacker's function.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        send(&mut self.attacker, &mut self.victim, self.to, bytes);
    }

    pub fn send(&mut self, packet: &Packet) {
        self.send_bytes(&packet.bytes());
    }

    /// Sends a packet from the stranger's function, and waits until the victim has taken it.
    pub fn send_as_stranger(&mut self, packet: &Packet) {
        send(&mut self.stranger, &mut self.victim, self.to, &packet.bytes());
        // A question to no queue pair is refused, to the same function.
        let from = self.stranger.queue_pair(BYSTANDER);
        let to = self.number & 0xff_0000;
        let probe = Packet { opcode: op::PROBE, to, from, ..Packet::default() };
        send(&mut self.stranger, &mut self.victim, self.to, &probe.bytes());
        self.until("an answer to the stranger", |arena| {
            arena.stranger.answers.iter().any(|answer| answer.to == from)
        });
        self.settle();
    }

    pub fn look(&mut self) {
        self.victim.look();
        self.attacker.look();
        self.stranger.look();
    }

    pub fn until(&mut self, what: &str, condition: impl Fn(&Arena) -> bool) {
        let deadline = Instant::now() + limit();
        while !condition(self) {
            assert!(Instant::now() < deadline, "{what}");
            self.look();
        }
    }

    /// Waits until the victim has taken all that the attacker has sent, and has answered.
    pub fn settle(&mut self) {
        for _ in 0..2 {
            let (to, from) = (self.bystander, self.attacker.queue_pair(BYSTANDER));
            self.attacker.answers.retain(|answer| answer.to != from);
            let probe = Packet { opcode: op::PROBE, to, from, ..Packet::default() };
            self.send(&probe);
            self.until("the bystander answers", |arena| {
                arena.attacker.answers.iter().any(|answer| answer.to == from)
            });
        }
    }

    /// Sends a packet, and waits until it is taken.
    pub fn attack(&mut self, packet: &Packet) {
        self.send(packet);
        self.settle();
    }

    /// The answers to the attacker's queue pair since the last call.
    pub fn answers(&mut self, opcode: u8) -> Vec<Packet> {
        let peer = self.attacker.queue_pair(PEER);
        let (wanted, others) = std::mem::take(&mut self.attacker.answers)
            .into_iter()
            .partition(|answer| answer.to == peer && answer.opcode == opcode);
        self.attacker.answers = others;
        wanted
    }

    /// The answers to the stranger's or the attacker's queue pair 0.
    pub fn answers_to_nobody(&self, stranger: bool) -> usize {
        let hand = if stranger { &self.stranger } else { &self.attacker };
        hand.answers.iter().filter(|answer| answer.opcode == op::LEAVE && answer.to == 0).count()
    }

    /// Asks for the memory of a key. Returns the device's key, if the victim gives one.
    pub fn resolve(&mut self, key: u32) -> Option<RemoteKey> {
        let packet = Packet { word: key, ..self.packet(op::RESOLVE) };
        self.attack(&packet);
        let answer = self.answers(op::RESOLVED).pop().expect("an answer");
        assert_eq!(answer.word, key);
        (answer.syndrome == 0).then(|| RemoteKey::from_bytes(&answer.body[..24]).expect("a key"))
    }

    /// Puts bytes by a device's key, from the attacker's function.
    pub fn put(&mut self, key: RemoteKey, offset: u64, bytes: &[u8]) -> Status {
        // The own device would refuse what does not fit.
        let key = RemoteKey { length: u64::MAX, ..key };
        let put = Put::inline(bytes, key.slice(offset, bytes.len() as u64)).context(77);
        self.attacker.results.clear();
        self.attacker.function.post_put(self.attacker.pair, put).unwrap();
        let is_put = |(context, _): &(u64, Status)| *context == 77;
        self.until("the put ends", |arena| arena.attacker.results.iter().any(is_put));
        self.attacker.results.iter().find(|it| is_put(it)).expect("it was there").1
    }

    /// The completions since the last call.
    pub fn completions(&mut self) -> Vec<WorkCompletion> {
        self.settle();
        std::iter::from_fn(|| self.victim.next(self.queue)).collect()
    }

    pub fn state(&self) -> QpState {
        self.victim.query(self.number).unwrap().0.state
    }

    /// Posts a request of the victim whose list is a part of its memory.
    pub fn post(&mut self, id: u64, operation: Operation, at: usize, length: u32) {
        let part = Sge { address: self.address(at), length, key: self.own };
        let request = SendRequest {
            id,
            operation,
            bytes: Bytes::Listed(&[part]),
            signaled: true,
            solicited: false,
            fence: false,
            to: None,
        };
        self.victim.post_send(self.number, &request).unwrap();
    }

    /// Posts a request without bytes.
    pub fn post_empty(&mut self, id: u64, operation: Operation) {
        let request = SendRequest {
            id,
            operation,
            bytes: Bytes::Listed(&[]),
            signaled: true,
            solicited: false,
            fence: false,
            to: None,
        };
        self.victim.post_send(self.number, &request).unwrap();
    }

    /// A window of the victim's memory, bound over part of the region `key`. Returns its key.
    pub fn window(&mut self, key: u32, at: usize, length: usize, access: Access) -> u32 {
        let window = self.victim.allocate_window(self.domain).unwrap();
        let address = self.address(at);
        let to = Binding { region: key, address, length: length as u64, access };
        self.post_empty(u64::MAX, Operation::BindWindow { window, key: window ^ 1, to });
        let done = self.completions();
        assert!(done.len() == 1 && done[0].status as u32 == 0, "{done:?}");
        window ^ 1
    }

    /// The bystander still receives, and nothing was written outside of the receives.
    pub fn is_unharmed(&mut self) {
        let part = Sge { address: self.address(MEMORY - 8), length: 8, key: self.own };
        self.victim.post_receive(self.bystander, 5, &[part]).unwrap();
        let (to, from) = (self.bystander, self.attacker.queue_pair(BYSTANDER));
        let psn = self.bystander_psn;
        let body = b"unharmed".to_vec();
        let packet = Packet { opcode: op::SEND, to, from, psn, body, ..Packet::default() };
        self.bystander_psn = psn.wrapping_add(1);
        self.attack(&packet);
        let done = self.victim.next(self.bystander_queue).expect("the bystander receives");
        assert_eq!((done.id, done.status as u32, done.length), (5, 0, 8), "{done:?}");
        let written: Vec<u8> = (MEMORY - 8..MEMORY).map(|at| self.byte(at)).collect();
        assert_eq!(written, b"unharmed");
    }
}

fn create(victim: &mut Adapter, service: Service, domain: Domain, queue: CqId) -> u32 {
    let capacity =
        Capacity { sends: 256, receives: 256, send_parts: 4, receive_parts: 4, inline_bytes: 64 };
    let options = bellwire_rdma::QueuePairOptions {
        service,
        domain,
        send_queue: queue,
        receive_queue: queue,
        shared: None,
        capacity,
        signal_all: false,
        object: 1,
    };
    victim.create_queue_pair(&options).unwrap()
}

/// Attributes of a queue pair that is connected to `peer`.
pub fn attributes(access: Access, host: std::net::Ipv4Addr, peer: u32) -> Attributes {
    Attributes {
        state: QpState::Init,
        access,
        qkey: Q_KEY,
        host: Some(host),
        peer,
        mtu: 5,
        timeout: 14,
        retry_count: 1,
        rnr_retry: 7,
        rnr_timer: 1,
        send_psn: FIRST,
        receive_psn: FIRST,
        reads: 1,
        peer_reads: 1,
        pkey_index: 0,
        port: 1,
        drained_event: false,
    }
}

/// Sends bytes; the victim makes room meanwhile.
fn send(hand: &mut Hand, victim: &mut Adapter, to: Address, bytes: &[u8]) {
    let deadline = Instant::now() + limit();
    loop {
        let message = Message::inline(bytes).to(to).unsignaled();
        match hand.function.post_send(hand.pair, message) {
            Ok(()) => return,
            Err(refused) => assert!(Instant::now() < deadline, "no room: {}", refused.error),
        }
        victim.look();
        hand.look();
    }
}
