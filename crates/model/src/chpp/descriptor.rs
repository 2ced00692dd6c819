//! Descriptor read and descriptor extract (C-25, C-30, C-34; cHPP section 4.1, Fig. 11).
//!
//! Ports: doorbells come from the arbiter; reads go to the port; commands go to the data read
//! module, GET packets to the crossbar. Descriptors of remote GETs come from the receive dispatch
//! and leave as PUT commands. They have a path of their own through this block: a local GET that
//! waits for the crossbar must not block them. Otherwise the channel of GETs would not prevent
//! deadlock (C-27).

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

/// A descriptor fetch in progress.
pub struct Job {
    pub operation: u32,
    /// The function that rang.
    pub function: usize,
    /// Its address in host memory.
    pub address: u64,
    /// Its bytes, with the length that the doorbell announced.
    pub bytes: Vec<u8>,
    /// Bytes requested.
    pub asked: u64,
    /// Bytes received.
    pub received: u64,
    /// Words that it occupies in the buffer for stored descriptors.
    pub stored_words: u16,
}

/// A remote GET: its descriptor, its sender and its target.
pub struct RemoteGet {
    pub operation: u32,
    pub bytes: Vec<u8>,
    /// The queue pair that sent it.
    pub from: Endpoint,
    /// The queue pair that it reads from.
    pub to: Endpoint,
}

/// What an event of an operation says, and for whom it is.
#[derive(Clone, Copy)]
pub struct Transfer {
    /// The operation, for the journal.
    pub operation: u32,
    /// Own queue pair; queue pair 0 if the descriptor has none.
    pub source: Endpoint,
    /// Far queue pair; the own one if the descriptor has none.
    pub destination: Endpoint,
    /// Its primitive; NAP if the descriptor has none.
    pub primitive: Primitive,
    /// Address of its descriptor.
    pub descriptor: u64,
    /// Bytes to move; 0 if it is refused.
    pub length: u64,
    pub tail: Tail,
}

/// A GET packet to send: it carries the descriptor unchanged.
pub struct GetRequest {
    pub transfer: Transfer,
    /// Key of the far queue pair.
    pub magic: u8,
    pub traffic_class: u8,
    pub bytes: Vec<u8>,
}

/// A transfer that is ready for its data to be read and packed: a NAP or a PUT.
pub struct Command {
    pub transfer: Transfer,
    /// Whether it answers a remote GET, of which local software does not know.
    pub is_remote: bool,
    pub magic: u8,
    pub traffic_class: u8,
    /// Whether the last packet asks for an event.
    pub wants_event: bool,
    /// What to read, in order.
    pub sources: Vec<Run>,
    /// Position of the reads: entry, and bytes of it.
    pub cursor: (usize, u64),
    /// Destinations of a PUT's data, in order.
    pub moves: Vec<Move>,
    /// Position of the packets: move, and bytes of it.
    pub packed: (usize, u64),
    /// Whether its data was inside the descriptor.
    pub is_immediate: bool,
    pub immediate: Vec<u8>,
    /// Bytes requested.
    pub asked: u64,
    /// Bytes packed.
    pub sent: u64,
    /// Packets packed.
    pub parts: u32,
    /// When the extract module finished with it.
    pub extracted: Time,
}

/// The result of extracting a descriptor.
pub enum Extract {
    /// Data to move.
    Command(Box<Command>),
    /// A GET packet to send.
    Get(GetRequest),
    /// A refused descriptor, and the reason.
    Refused(Transfer, Status),
}

/// The descriptor in the extract module.
pub enum Extracting {
    Local(Job),
    Remote(RemoteGet),
}

/// Registers and queues of the two modules.
#[derive(Default)]
pub struct DescriptorUnit {
    /// Descriptor fetches in progress, in the order of their doorbells.
    pub jobs: Queue<Job>,
    /// Number of the first of these jobs.
    pub first_job: u64,
    /// Number of the first job that the read module has not reached.
    pub reached: u64,
    /// Number of the first job that may not be requested in full.
    asked: u64,
    /// Remote GETs that wait.
    pub remote: Queue<RemoteGet>,
    pub extracting: Option<Extracting>,
    /// The extracted local descriptor that waits for room in the next block.
    pub held: Option<Extract>,
    /// The extracted remote GET that waits for room in the next block.
    pub held_remote: Option<Box<Command>>,
    /// Whether the last extracted descriptor was a remote GET.
    pub last_was_remote: bool,
    pub counters: DescriptorCounters,
}

/// Stage counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DescriptorCounters {
    /// Doorbells that the arbiter granted.
    pub doorbells: u64,
    /// Descriptors that were read in full.
    pub read: u64,
    pub extracted: u64,
    pub gets: u64,
    /// Remote GETs turned into PUTs.
    pub remote_gets: u64,
    pub refused: u64,
}

impl DescriptorUnit {
    /// The first reached descriptor that is not requested in full, with its number.
    pub fn next_to_ask(&mut self) -> Option<(u64, &mut Job)> {
        while self.asked < self.reached {
            let (number, at) = (self.asked, (self.asked - self.first_job) as usize);
            if self.jobs.get_mut(at).is_some_and(|job| job.asked < job.bytes.len() as u64) {
                return self.jobs.get_mut(at).map(|job| (number, job));
            }
            self.asked += 1;
        }
        None
    }

    /// Notes that bytes of a descriptor have arrived; true if it is complete.
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

    /// Moves the next descriptor into the idle extract module. Returns its operation and length.
    /// Local and remote ones alternate.
    pub fn begin(&mut self, now: Time) -> Option<(u32, usize)> {
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
        let (extracting, what) = if self.last_was_remote {
            let get = self.remote.pop(now)?;
            let what = (get.operation, get.bytes.len());
            (Extracting::Remote(get), what)
        } else {
            self.first_job += 1;
            let job = self.jobs.pop(now)?;
            let what = (job.operation, job.bytes.len());
            (Extracting::Local(job), what)
        };
        self.extracting = Some(extracting);
        Some(what)
    }
}

impl Transfer {
    /// A transfer of which nothing else is known.
    pub fn new(operation: u32, source: Endpoint, descriptor: u64) -> Transfer {
        Transfer {
            operation,
            source,
            destination: source,
            primitive: Primitive::Nap,
            descriptor,
            length: 0,
            tail: Tail::EMPTY,
        }
    }
}

/// Extracts a local descriptor at one of `ports` nodes. `own` is queue pair 0 of the function that
/// rang, and `layouts` are those of the local functions; sources must lie in the function's window
/// (C-39). `recycled` is a command whose memory is reused. The caller moves the descriptor into a
/// GET packet.
pub fn extract_local(
    job: &Job,
    (own, ports): (Endpoint, usize),
    layouts: &[Layout],
    recycled: Option<Box<Command>>,
) -> Extract {
    let &Job { operation, function, address, ref bytes, .. } = job;
    let mut transfer = Transfer::new(operation, own, address);
    let repr = match DescriptorRepr::parse(bytes) {
        Ok(repr) => repr,
        Err(WireError::UnequalSums { .. }) => {
            transfer.primitive = Primitive::Put;
            return Extract::Refused(transfer, Status::UnequalSums);
        }
        Err(_) => return Extract::Refused(transfer, Status::BadDescriptor),
    };
    transfer.destination = repr.destination;
    let Ok(source) = Endpoint::new(own.cpu(), own.function(), repr.queue_pair) else {
        return Extract::Refused(transfer, Status::BadDescriptor);
    };
    (transfer.source, transfer.primitive) = (source, repr.work.primitive());
    if usize::from(repr.destination.cpu()) >= ports {
        return Extract::Refused(transfer, Status::Unreachable);
    }
    let DescriptorRepr { magic, traffic_class, .. } = repr;
    if let Work::Get { .. } = repr.work {
        transfer.length = bytes.len() as u64;
        return Extract::Get(GetRequest { transfer, magic, traffic_class, bytes: Vec::new() });
    }
    match command(&repr, transfer, magic, &layouts[function], recycled) {
        Ok(command) => Extract::Command(command),
        Err(status) => Extract::Refused(transfer, status),
    }
}

/// Turns a remote GET into the PUT that answers it (C-25); nothing if it is invalid or reads
/// outside the window.
pub fn extract_remote(
    get: &RemoteGet,
    ports: usize,
    layouts: &[Layout],
    recycled: Option<Box<Command>>,
) -> Option<Box<Command>> {
    let repr = DescriptorRepr::parse(&get.bytes).ok()?;
    let Work::Get { return_magic, .. } = repr.work else { return None };
    if usize::from(get.from.cpu()) >= ports {
        return None;
    }
    let layout = layouts.get(usize::from(get.to.function()))?;
    let transfer = Transfer::new(get.operation, get.to, 0);
    let transfer = Transfer { destination: get.from, primitive: Primitive::Put, ..transfer };
    let mut command = command(&repr, transfer, return_magic, layout, recycled).ok()?;
    command.is_remote = true;
    Some(command)
}

/// A command for the work of a descriptor, with the ends of `transfer`.
fn command(
    repr: &DescriptorRepr<'_>,
    transfer: Transfer,
    magic: u8,
    layout: &Layout,
    recycled: Option<Box<Command>>,
) -> Result<Box<Command>, Status> {
    let mut command = recycled.unwrap_or_else(|| Box::new(Command::empty(transfer)));
    // Reuse the memory of its lists.
    let (mut sources, mut moves) =
        (std::mem::take(&mut command.sources), std::mem::take(&mut command.moves));
    let mut immediate = std::mem::take(&mut command.immediate);
    sources.clear();
    moves.clear();
    immediate.clear();
    let list = match repr.work {
        Work::NapImmediate(data) => {
            immediate.extend_from_slice(data);
            None
        }
        Work::NapIndirect(entries) => Some(entries),
        Work::Put(chain) | Work::Get { chain, .. } => {
            moves.extend(chain.moves().map_err(|_| Status::UnequalSums)?);
            Some(chain.sources)
        }
    };
    let entries = list.iter().flat_map(|entries| entries.iter()).filter(|entry| entry.length > 0);
    sources.extend(entries.map(|entry| Run { address: entry.address, length: entry.length }));
    if sources.iter().any(|run| !layout.holds(run.address, run.length)) {
        return Err(Status::SourceFault);
    }
    let length = immediate.len() as u64 + sources.iter().map(|run| run.length).sum::<u64>();
    *command = Command {
        magic,
        traffic_class: repr.traffic_class,
        wants_event: repr.wants_event || transfer.primitive == Primitive::Nap,
        sources,
        moves,
        is_immediate: matches!(repr.work, Work::NapImmediate(_)),
        immediate,
        ..Command::empty(Transfer { length, tail: repr.tail, ..transfer })
    };
    Ok(command)
}

impl Command {
    /// A command that moves nothing.
    pub(super) fn empty(transfer: Transfer) -> Command {
        Command {
            transfer,
            is_remote: false,
            magic: 0,
            traffic_class: 0,
            wants_event: false,
            sources: Vec::new(),
            cursor: (0, 0),
            moves: Vec::new(),
            packed: (0, 0),
            is_immediate: false,
            immediate: Vec::new(),
            asked: 0,
            sent: 0,
            parts: 0,
            extracted: Time::ZERO,
        }
    }
}

#[cfg(test)]
mod cycle_tests;
