//! Descriptor read and descriptor extract (C-25, C-30, C-34; cHPP section 4.1, Fig. 11).
//!
//! Ports: doorbells come in from the arbiter; reads go to the port; commands go to the data read module, GET packets to the crossbar.
//! Descriptors of GETs from elsewhere come in from the receive dispatch and leave as PUT commands. They have a way of their own through
//! this block: a GET of ours that waits for the crossbar must not hold them up, or the channel of GETs would not help (C-27).

use std::collections::VecDeque;

use bellwire_wire::WireError;
use bellwire_wire::descriptor::{DescriptorRepr, Work};
use bellwire_wire::endpoint::Endpoint;
use bellwire_wire::entry::Move;
use bellwire_wire::event::Status;
use bellwire_wire::primitive::Primitive;
use bellwire_wire::tail::Tail;

use super::function::Layout;
use super::pcie::Run;
use crate::stats::Queue;
use crate::units::Time;

/// A descriptor that is being read.
pub struct Job {
    /// The operation, for the journal.
    pub operation: u32,
    /// The function that rang.
    pub function: usize,
    /// Where it is in host memory.
    pub address: u64,
    /// Its bytes, as many as the doorbell said.
    pub bytes: Vec<u8>,
    /// Bytes that were asked for.
    pub asked: u64,
    /// Bytes that have come.
    pub received: u64,
    /// Words that it takes in the buffer for stored descriptors.
    pub stored_words: u16,
}

/// A GET from elsewhere: its descriptor, and whom it is from and for.
pub struct RemoteGet {
    /// The operation, for the journal.
    pub operation: u32,
    /// The descriptor.
    pub bytes: Vec<u8>,
    /// Who asks.
    pub from: Endpoint,
    /// Whom they ask.
    pub to: Endpoint,
}

/// A transfer that is ready for its data to be read and packed.
pub struct Command {
    /// The operation, for the journal.
    pub operation: u32,
    /// Own queue pair.
    pub source: Endpoint,
    /// Far queue pair.
    pub destination: Endpoint,
    /// NAP or PUT.
    pub primitive: Primitive,
    /// Key of the far queue pair.
    pub magic: u8,
    /// Traffic class.
    pub traffic_class: u8,
    /// Whether the last packet asks for an event.
    pub wants_event: bool,
    /// Software tail.
    pub tail: Tail,
    /// Where the descriptor was; nothing for a GET from elsewhere, of which our software knows nothing.
    pub descriptor: Option<u64>,
    /// What to read, in order.
    pub sources: Vec<Run>,
    /// How far the reads have got: entry, and bytes of it.
    pub cursor: (usize, u64),
    /// Where a PUT's data goes, in order.
    pub moves: Vec<Move>,
    /// How far the packets have got: move, and bytes of it.
    pub packed: (usize, u64),
    /// Whether its data was inside the descriptor.
    pub is_immediate: bool,
    /// That data.
    pub immediate: Vec<u8>,
    /// Bytes to move.
    pub total: u64,
    /// Bytes asked for.
    pub asked: u64,
    /// Bytes packed.
    pub sent: u64,
    /// Packets packed.
    pub parts: u32,
    /// When the extract module had it.
    pub extracted: Time,
}

/// What the extract module makes of a descriptor.
pub enum Extract {
    /// Data to move.
    Command(Box<Command>),
    /// A GET packet to send: the descriptor goes as it is.
    Get {
        /// The operation, for the journal.
        operation: u32,
        /// Own queue pair.
        source: Endpoint,
        /// Far queue pair.
        destination: Endpoint,
        /// Key of the far queue pair.
        magic: u8,
        /// Traffic class.
        traffic_class: u8,
        /// Where the descriptor is.
        address: u64,
        /// The descriptor.
        bytes: Vec<u8>,
    },
    /// Nothing can be done.
    Refused {
        /// The operation, for the journal.
        operation: u32,
        /// Own queue pair; queue pair 0 if the descriptor does not even say that.
        source: Endpoint,
        /// Far queue pair, if it was said.
        destination: Endpoint,
        /// What was asked for, if it was said.
        primitive: Primitive,
        /// Where the descriptor is.
        address: u64,
        /// Why.
        status: Status,
    },
}

/// What is in the extract module.
pub enum Extracting {
    /// A descriptor of ours.
    Local(Job),
    /// One from elsewhere.
    Remote(RemoteGet),
}

impl Extracting {
    /// Bytes of the descriptor.
    pub fn bytes(&self) -> usize {
        match self {
            Extracting::Local(job) => job.bytes.len(),
            Extracting::Remote(get) => get.bytes.len(),
        }
    }

    /// The operation, for the journal.
    pub fn operation(&self) -> u32 {
        match self {
            Extracting::Local(job) => job.operation,
            Extracting::Remote(get) => get.operation,
        }
    }
}

/// Registers and queues of the two modules.
#[derive(Default)]
pub struct DescriptorUnit {
    /// Descriptors that are being read, in the order of their doorbells.
    pub jobs: Queue<Job>,
    /// Number of the first of them.
    pub first_job: u64,
    /// Number of the first that the read module has not got to.
    pub reached: u64,
    /// Number of the first that is not known to be asked for in full.
    asked: u64,
    /// For each doorbell in the FIFO of a function, the descriptor if a processor stored it into the interface (B-01).
    pub stored: Vec<VecDeque<Option<Vec<u8>>>>,
    /// GETs from elsewhere that wait.
    pub remote: Queue<RemoteGet>,
    /// What is being extracted.
    pub extracting: Option<Extracting>,
    /// What was extracted for us and waits for room behind.
    pub held: Option<Extract>,
    /// What was extracted for others and waits for room behind.
    pub held_remote: Option<Box<Command>>,
    /// Whether a GET from elsewhere was extracted last.
    pub last_was_remote: bool,
    /// Doorbells taken, descriptors read, GETs of ours, GETs of others, refusals.
    pub counters: DescriptorCounters,
}

/// Stage counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DescriptorCounters {
    /// Doorbells that the arbiter gave.
    pub doorbells: u64,
    /// Descriptors that were read in full.
    pub read: u64,
    /// Descriptors of ours that were extracted.
    pub extracted: u64,
    /// GET packets sent.
    pub gets: u64,
    /// GETs of others turned into PUTs.
    pub remote_gets: u64,
    /// Descriptors that were refused.
    pub refused: u64,
}

impl DescriptorUnit {
    /// Empty modules.
    pub fn new(functions: usize) -> DescriptorUnit {
        DescriptorUnit { stored: vec![VecDeque::new(); functions], ..DescriptorUnit::default() }
    }

    /// The first descriptor that the read module has got to and of which there is more to ask for, with its number.
    pub fn to_ask(&mut self) -> Option<(u64, &mut Job)> {
        while self.asked < self.reached {
            let (number, at) = (self.asked, (self.asked - self.first_job) as usize);
            if self.jobs.get_mut(at).is_some_and(|job| job.asked < job.bytes.len() as u64) {
                return self.jobs.get_mut(at).map(|job| (number, job));
            }
            self.asked += 1;
        }
        None
    }

    /// Notes that bytes of a descriptor have come; true if it is all there.
    pub fn received(&mut self, job: u64, run_address: u64, bytes: &[u8]) -> bool {
        let Some(job) =
            job.checked_sub(self.first_job).and_then(|at| self.jobs.get_mut(at as usize))
        else {
            return false;
        };
        let start = (run_address - job.address) as usize;
        job.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        job.received += bytes.len() as u64;
        let whole = job.received == job.bytes.len() as u64;
        self.counters.read += u64::from(whole);
        whole
    }

    /// The descriptor whose turn it is, taken into the extract module, which is free, now: ours and others' in turn.
    pub fn begin(&mut self, now: Time) -> Option<&Extracting> {
        debug_assert!(self.extracting.is_none());
        let local = self.held.is_none()
            && self.first_job < self.reached
            && self.jobs.front().is_some_and(|job| job.received == job.bytes.len() as u64);
        let remote = self.held_remote.is_none() && !self.remote.is_empty();
        self.last_was_remote = match (local, remote) {
            (false, false) => return None,
            (true, true) => !self.last_was_remote,
            (_, remote) => remote,
        };
        self.extracting = if self.last_was_remote {
            self.remote.pop(now).map(Extracting::Remote)
        } else {
            self.first_job += 1;
            self.jobs.pop(now).map(Extracting::Local)
        };
        self.extracting.as_ref()
    }
}

/// Reads a descriptor of our own, of node `node` of `ports`. `layouts` are those of our functions; sources must lie in the window of the one that rang
/// (C-39). `recycled` is a command whose memory may be used again.
///
/// Gives the descriptor's buffer back, unless it goes into a GET packet.
pub fn extract_local(
    job: Job,
    (node, ports): (u8, usize),
    layouts: &[Layout],
    recycled: Option<Box<Command>>,
    now: Time,
) -> (Extract, Option<Vec<u8>>) {
    let Job { operation, function, address, bytes, .. } = job;
    let of = (operation, function, address);
    match extract_kept(&bytes, of, (node, ports), layouts, recycled, now) {
        Ok(extract) => (extract, Some(bytes)),
        Err((source, destination, magic, traffic_class)) => {
            let get = Extract::Get {
                operation,
                source,
                destination,
                magic,
                traffic_class,
                address,
                bytes,
            };
            (get, None)
        }
    }
}

/// What becomes of a descriptor, if it is not that of a GET; else own and far queue pair, key and traffic class.
fn extract_kept(
    bytes: &[u8],
    (operation, function, address): (u32, usize, u64),
    (node, ports): (u8, usize),
    layouts: &[Layout],
    recycled: Option<Box<Command>>,
    now: Time,
) -> Result<Extract, (Endpoint, Endpoint, u8, u8)> {
    let at = |queue_pair| Endpoint::new(node, function as u8, queue_pair);
    let refused = |source, destination, primitive, status| Extract::Refused {
        operation,
        source,
        destination,
        primitive,
        address,
        status,
    };
    let Ok(zero) = at(0) else { unreachable!("node and function are in range by configuration") };
    let repr = match DescriptorRepr::parse(bytes) {
        Ok(repr) => repr,
        Err(WireError::UnequalSums { .. }) => {
            return Ok(refused(zero, zero, Primitive::Put, Status::UnequalSums));
        }
        Err(_) => return Ok(refused(zero, zero, Primitive::Nap, Status::BadDescriptor)),
    };
    let destination = repr.destination;
    let Ok(source) = at(repr.queue_pair) else {
        return Ok(refused(zero, destination, Primitive::Nap, Status::BadDescriptor));
    };
    if usize::from(destination.cpu()) >= ports {
        return Ok(refused(source, destination, repr.work.primitive(), Status::Unreachable));
    }
    if let Work::Get { .. } = repr.work {
        return Err((source, destination, repr.magic, repr.traffic_class));
    }
    let ends = (source, destination, repr.magic);
    Ok(match command(&repr, ends, &layouts[function], recycled, (operation, now)) {
        Ok(mut command) => {
            command.descriptor = Some(address);
            Extract::Command(command)
        }
        Err(status) => refused(source, destination, repr.work.primitive(), status),
    })
}

/// Turns a GET from elsewhere into the PUT that answers it (C-25); nothing if it asks for what it may not have.
pub fn extract_remote(
    get: &RemoteGet,
    ports: usize,
    layouts: &[Layout],
    recycled: Option<Box<Command>>,
    now: Time,
) -> Option<Box<Command>> {
    let repr = DescriptorRepr::parse(&get.bytes).ok()?;
    let Work::Get { return_magic, .. } = repr.work else { return None };
    if usize::from(get.from.cpu()) >= ports {
        return None;
    }
    let layout = layouts.get(usize::from(get.to.function()))?;
    command(&repr, (get.to, get.from, return_magic), layout, recycled, (get.operation, now)).ok()
}

fn command(
    repr: &DescriptorRepr<'_>,
    (source, destination, magic): (Endpoint, Endpoint, u8),
    layout: &Layout,
    recycled: Option<Box<Command>>,
    (operation, now): (u32, Time),
) -> Result<Box<Command>, Status> {
    let mut command = recycled.unwrap_or_else(|| Box::new(Command::empty(source)));
    // Its lists keep their memory.
    let (mut sources, mut moves) =
        (std::mem::take(&mut command.sources), std::mem::take(&mut command.moves));
    let mut immediate = std::mem::take(&mut command.immediate);
    sources.clear();
    moves.clear();
    immediate.clear();
    let (primitive, list) = match repr.work {
        Work::NapImmediate(data) => {
            immediate.extend_from_slice(data);
            (Primitive::Nap, None)
        }
        Work::NapIndirect(entries) => (Primitive::Nap, Some(entries)),
        Work::Put(chain) | Work::Get { chain, .. } => {
            moves.extend(chain.moves().map_err(|_| Status::UnequalSums)?);
            (Primitive::Put, Some(chain.sources))
        }
    };
    let entries = list.iter().flat_map(|entries| entries.iter()).filter(|entry| entry.length > 0);
    sources.extend(entries.map(|entry| Run { address: entry.address, length: entry.length }));
    if sources.iter().any(|run| !layout.holds(run.address, run.length)) {
        return Err(Status::SourceFault);
    }
    let total = immediate.len() as u64 + sources.iter().map(|run| run.length).sum::<u64>();
    *command = Command {
        operation,
        destination,
        primitive,
        magic,
        traffic_class: repr.traffic_class,
        wants_event: repr.wants_event || primitive == Primitive::Nap,
        tail: repr.tail,
        sources,
        moves,
        is_immediate: matches!(repr.work, Work::NapImmediate(_)),
        immediate,
        total,
        extracted: now,
        ..Command::empty(source)
    };
    Ok(command)
}

impl Command {
    /// One that moves nothing.
    fn empty(source: Endpoint) -> Command {
        Command {
            operation: 0,
            source,
            destination: source,
            primitive: Primitive::Nap,
            magic: 0,
            traffic_class: 0,
            wants_event: false,
            tail: Tail::EMPTY,
            descriptor: None,
            sources: Vec::new(),
            cursor: (0, 0),
            moves: Vec::new(),
            packed: (0, 0),
            is_immediate: false,
            immediate: Vec::new(),
            total: 0,
            asked: 0,
            sent: 0,
            parts: 0,
            extracted: Time::ZERO,
        }
    }
}
