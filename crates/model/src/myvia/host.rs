//! A host's processor: it runs the user agent, the kernel agent and interrupts one after the other.
//! Interrupts go before waiting tasks, but Ethernet frames alternate with programs.

use std::collections::VecDeque;

use super::bus::{Direction, Master};
use super::config::{Queues, Translation};
use super::descriptor::{self, PhysicalDescriptor};
use super::machine::{Completion, Local, NicEvent, Status};
use super::memory::ENTRY_BYTES;
use super::network::soon;
use super::pipeline::Side;
use super::ring::Place;
use crate::engine::Handle;
use crate::units::Span;

/// Bytes of Berkeley VIA's doorbell (3.3).
pub const DOORBELL_BYTES: u32 = 2;
/// Bytes of the flag, and of an Ethernet controller's doorbell. Our choice.
const WORD_BYTES: u32 = 4;

/// A task for the processor.
#[derive(Clone, Debug)]
pub(super) struct Task {
    /// Time before the action.
    pub work: Span,
    pub action: Action,
}

/// The action at the end of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// The user agent puts the descriptor of operation `tag` into a work queue.
    Post { vi: u16, side: Side, tag: u16 },
    /// The handler moves a descriptor from the big ring to the small one, or ends.
    Refill { vi: u16, side: Side },
    /// The handler writes translations, for which a job waits, into the NIC's cache.
    Fill { job: Handle, entries: u32 },
    /// The handler checks for received frames.
    Frames,
    /// The handler copies a frame to the program's memory.
    Frame(Handle),
    /// The program sees a completion.
    Complete(Completion),
}

/// The target of a processor's write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wrote {
    Nothing,
    Descriptor,
    Flag,
    Refill,
    Open,
    Entries,
}

/// A host's processor.
#[derive(Clone, Debug, Default)]
pub struct Processor {
    interrupted: VecDeque<Task>,
    queue: VecDeque<Task>,
    current: Option<Action>,
    writing: Option<Wrote>,
    /// A frame was handled; a waiting program may go before the next.
    after_frame: bool,
    /// The frame handler is running.
    in_handler: bool,
    frames: VecDeque<Handle>,
    /// Its counters.
    pub counts: HostCounts,
}

/// Counters of a host's processor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostCounts {
    /// Descriptors written into the NIC by programmed I/O (M-12).
    pub descriptor_writes: u64,
    /// Doorbells rung.
    pub doorbells: u64,
    /// Interrupts for refills of small rings (M-15).
    pub refill_interrupts: u64,
    /// Interrupts for misses of the NIC's translation cache (B-14).
    pub miss_interrupts: u64,
    /// Interrupts for received frames (B-16).
    pub frame_interrupts: u64,
    /// System calls to post.
    pub traps: u64,
    /// Messages without a posted receive.
    pub dropped: u64,
}

impl HostCounts {
    /// All interrupts.
    pub fn interrupts(&self) -> u64 {
        self.refill_interrupts + self.miss_interrupts + self.frame_interrupts
    }
}

impl Local<'_> {
    /// Queues a task for a host's processor.
    pub(super) fn work(&mut self, task: Task) {
        self.node.processor.queue.push_back(task);
        self.begin();
    }

    /// Interrupts a host's processor.
    pub(super) fn interrupt(&mut self, action: Action) {
        let entry = self.setup.host_cycles(self.setup.software.entry);
        let work = self.setup.software.interrupt + entry;
        self.node.processor.interrupted.push_back(Task { work, action });
        self.begin();
    }

    /// The NIC requests a refill of a small ring, if needed (M-15).
    pub(super) fn ask_refill(&mut self, vi: u16, side: Side) {
        if self.node.vis[usize::from(vi)].queues[side as usize].ask() {
            self.node.processor.counts.refill_interrupts += 1;
            self.interrupt(Action::Refill { vi, side });
        }
    }

    /// A frame has arrived in kernel memory.
    pub(super) fn frame_came(&mut self, job: Handle) {
        let processor = &mut self.node.processor;
        processor.frames.push_back(job);
        if !std::mem::replace(&mut processor.in_handler, true) {
            processor.counts.frame_interrupts += 1;
            self.interrupt(Action::Frames);
        }
    }

    /// An operation has ended and its status is in host memory: the program will see it.
    pub(super) fn complete(&mut self, tag: u16) {
        let Some(operation) = self.node.operations[usize::from(tag)].take() else { return };
        self.node.free_tags.push(tag);
        let completion = operation.completion;
        self.node.vis[usize::from(completion.vi)].outstanding[completion.side as usize] -= 1;
        let work = self.setup.host_cycles(self.setup.software.complete);
        self.work(Task { work, action: Action::Complete(completion) });
    }

    fn begin(&mut self) {
        let processor = &mut self.node.processor;
        if processor.current.is_some() {
            return;
        }
        // Frames, like the kernel's soft interrupts, alternate with programs. Otherwise programs
        // would never post a receive again.
        let Processor { interrupted, queue, after_frame, .. } = processor;
        let frames = matches!(interrupted.front(), Some(Task { action: Action::Frames, .. }));
        let yields = frames && std::mem::take(after_frame);
        let program = if yields { queue.pop_front() } else { None };
        let next = program.or_else(|| interrupted.pop_front()).or_else(|| queue.pop_front());
        if let Some(Task { work, action }) = next {
            processor.current = Some(action);
            soon(self.schedule, work, NicEvent::Worked(self.host));
        }
    }

    /// The processor has done its work; now it acts, perhaps by a write to the NIC.
    pub(super) fn worked(&mut self) {
        let Some(action) = self.node.processor.current else { return };
        let descriptor = match action {
            Action::Post { vi, tag, .. } => self.descriptor(vi, tag),
            _ => None,
        };
        let counts = &mut self.node.processor.counts;
        let (wrote, bytes) = match action {
            Action::Post { vi, side, .. } => {
                let Some(descriptor) = descriptor else { return };
                let queue = &mut self.node.vis[usize::from(vi)].queues[side as usize];
                match self.setup.system.queues {
                    // This write is the doorbell (M-12). If the small ring is full or closed, the
                    // big ring takes it (M-13, M-14).
                    Queues::NicRing if queue.place() == Place::Small => {
                        counts.descriptor_writes += 1;
                        (Wrote::Descriptor, descriptor::BYTES as u32)
                    }
                    Queues::NicRing => match queue.put_big(descriptor) {
                        true => (Wrote::Flag, WORD_BYTES),
                        false => (Wrote::Nothing, 0),
                    },
                    Queues::HostQueue => {
                        counts.doorbells += 1;
                        (Wrote::Descriptor, DOORBELL_BYTES)
                    }
                    Queues::Kernel => {
                        counts.traps += 1;
                        counts.doorbells += u64::from(side == Side::Send);
                        let bytes = if side == Side::Send { WORD_BYTES } else { 0 };
                        (Wrote::Descriptor, bytes)
                    }
                }
            }
            Action::Refill { vi, side } => {
                let queue = &self.node.vis[usize::from(vi)].queues[side as usize];
                if queue.can_refill() {
                    (Wrote::Refill, descriptor::BYTES as u32)
                } else if queue.can_open() {
                    (Wrote::Open, WORD_BYTES)
                } else {
                    (Wrote::Nothing, 0)
                }
            }
            Action::Fill { entries, .. } => (Wrote::Entries, ENTRY_BYTES * entries),
            Action::Frames | Action::Frame(_) | Action::Complete(_) => (Wrote::Nothing, 0),
        };
        self.node.processor.writing = Some(wrote);
        if bytes == 0 {
            self.wrote();
        } else {
            let grant = NicEvent::Grant(self.host);
            self.node.bus.ask(self.schedule, Master::Host, Direction::Write, bytes, grant);
        }
    }

    /// The processor's write has arrived at the NIC, or there was none.
    pub(super) fn wrote(&mut self) {
        let processor = &mut self.node.processor;
        let written = processor.current.take().zip(processor.writing.take());
        let Some((action, wrote)) = written else { return };
        match action {
            Action::Post { vi, side, tag } => self.posted((vi, side, tag), wrote),
            Action::Refill { vi, side } => self.refilled((vi, side), wrote),
            Action::Fill { job, .. } => self.translated(job),
            Action::Frames => match processor.frames.pop_front() {
                Some(job) => {
                    let length = u64::from(self.node.agent.jobs[job].length);
                    let copy = self.setup.software.copy.time(crate::units::Bytes::new(length));
                    let work = self.setup.host_cycles(self.setup.software.frame) + copy;
                    let task = Task { work, action: Action::Frame(job) };
                    self.node.processor.interrupted.push_front(task);
                }
                None => processor.in_handler = false,
            },
            Action::Frame(job) => self.frame_done(job),
            Action::Complete(completion) => self.notices.push_back(completion),
        }
        self.begin();
    }

    /// The physical descriptor of an operation (M-11). The address is physical if the user agent
    /// translates (M-10).
    fn descriptor(&self, vi: u16, tag: u16) -> Option<PhysicalDescriptor> {
        let operation = self.node.operations[usize::from(tag)].as_ref()?;
        let address = match self.setup.system.translation {
            Translation::User => operation.extents[0].address,
            _ => operation.offset,
        };
        Some(PhysicalDescriptor { address, length: operation.completion.length, vi, tag })
    }

    fn posted(&mut self, (vi, side, tag): (u16, Side, u16), wrote: Wrote) {
        let descriptor = self.descriptor(vi, tag);
        let queue = &mut self.node.vis[usize::from(vi)].queues[side as usize];
        match (wrote, descriptor) {
            (Wrote::Descriptor, Some(descriptor)) => queue.put_small(descriptor),
            (Wrote::Flag, _) => queue.flag_came(),
            _ => {}
        }
        self.note_dry(vi);
        self.ask_refill(vi, side);
        self.wake();
    }

    fn refilled(&mut self, (vi, side): (u16, Side), wrote: Wrote) {
        let queue = &mut self.node.vis[usize::from(vi)].queues[side as usize];
        match wrote {
            Wrote::Refill => {
                queue.refill();
                let work = self.setup.host_cycles(self.setup.software.entry);
                let task = Task { work, action: Action::Refill { vi, side } };
                self.node.processor.interrupted.push_front(task);
                self.wake();
            }
            Wrote::Open => {
                queue.open();
                queue.handler_ended();
            }
            _ => queue.handler_ended(),
        }
        self.note_dry(vi);
        self.ask_refill(vi, side);
    }

    /// Ends the kernel's part of receiving: the frame is copied or dropped.
    fn frame_done(&mut self, job: Handle) {
        self.node.agent.give_back(job);
        let job = self.node.agent.jobs.take(job);
        let vi = &mut self.node.vis[usize::from(job.vi)];
        if job.first() {
            let receive = vi.queues[Side::Receive as usize].take();
            vi.arriving = Some(receive.map(|descriptor| descriptor.tag));
        }
        let operation = vi.arriving.flatten();
        if job.last {
            vi.arriving = None;
            match operation {
                Some(tag) => {
                    self.finish_receive(tag, job.message, job.total);
                    self.complete(tag);
                }
                None => self.node.processor.counts.dropped += 1,
            }
        }
        // The handler continues with the next frame, without another interrupt.
        let task = Task { work: Span::ZERO, action: Action::Frames };
        let processor = &mut self.node.processor;
        processor.interrupted.push_front(task);
        processor.after_frame = true;
        self.wake();
    }

    /// Enters an arrived message into its receive's completion.
    pub(super) fn finish_receive(&mut self, tag: u16, message: u64, total: u32) {
        if let Some(operation) = self.node.operations[usize::from(tag)].as_mut() {
            let completion = &mut operation.completion;
            if total > completion.length {
                completion.status = Status::TooLong;
            }
            completion.message = message;
            completion.length = total;
        }
    }

    /// Measures the time that a send queue's small ring is empty while the big one is not (M-16).
    pub(super) fn note_dry(&mut self, vi: u16) {
        let vi = &mut self.node.vis[usize::from(vi)];
        let queue = &vi.queues[Side::Send as usize];
        let is_dry = queue.small_len() == 0 && queue.big_len() > 0;
        match vi.dry_since {
            None if is_dry => vi.dry_since = Some(self.schedule.now()),
            Some(since) if !is_dry => {
                vi.dry += self.schedule.now().since(since);
                vi.dry_since = None;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::HostCounts;

    /// All interrupts are those of the three causes.
    #[test]
    fn interrupts_are_added() {
        let counts = HostCounts {
            refill_interrupts: 2,
            miss_interrupts: 30,
            frame_interrupts: 400,
            ..HostCounts::default()
        };
        assert_eq!(counts.interrupts(), 432);
    }
}
