//! Where the time of an operation goes: its stages in sequence, without gap or overlap, each wait
//! with its cause.

use std::fmt;

use serde::Serialize;

use super::record::MOST_NOTES;
use super::record::frames::{Frames, Wire};
use crate::units::{Span, Time};

/// A stage of an operation, in the order of a PUT (Figs. 11 and 12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The processor writes the descriptor and the doorbell (Oc).
    Processor,
    /// The doorbell on the bus.
    DoorbellWrite,
    /// Doorbell module and its FIFO.
    Doorbell,
    /// Arbiter over the FIFOs.
    Arbiter,
    /// Descriptor read module.
    DescriptorRead,
    /// The descriptor's memory read: bus, memory, bus.
    DescriptorMemory,
    /// Descriptor extract module.
    DescriptorExtract,
    /// A GET packet's trip through packer, crossbar and dispatch to the far send engine.
    GetTrip,
    /// Data read module.
    DataRead,
    /// The data's memory read: bus, memory, bus.
    DataMemory,
    /// Data extract module.
    DataExtract,
    /// Data reorder module.
    DataReorder,
    /// Packer.
    Packer,
    /// Crossbar.
    Crossbar,
    /// The wires between two controllers.
    ControllerLink,
    /// Receive dispatch.
    Dispatch,
    /// PUT or NAP upload.
    Upload,
    /// Data on the bus, into memory.
    DataWrite,
    /// The completion event on the bus, into memory.
    EventWrite,
}

/// Why an operation waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The processor was busy with earlier operations, or 32 were outstanding (C-33).
    Processor,
    /// Another processor held the lock of the engine (B-01).
    Lock,
    /// The block was busy with earlier work, or the arbiter chose another function.
    Arbiter,
    /// No free tag.
    Tag,
    /// No credits of the other end of the bus.
    Credit,
    /// The wires of the bus were busy.
    Link,
    /// The memory was busy.
    Memory,
    /// Earlier data had not arrived yet.
    Order,
    /// No room in the virtual channel, or the output was busy.
    VirtualChannel,
    /// No room in the next buffer.
    Room,
    /// No NAP slot or no event record free.
    Slot,
}

impl Cause {
    /// Its meaning, for readers who do not know the interface.
    pub fn meaning(self) -> &'static str {
        match self {
            Cause::Processor => {
                "the processor is busy with earlier operations, or 32 are outstanding"
            }
            Cause::Lock => "another processor has the lock of the engine",
            Cause::Arbiter => "the block is busy with what came before, or others have their turn",
            Cause::Tag => "no free tag for a read",
            Cause::Credit => "no credit at the far end of the bus",
            Cause::Link => "the wires of the bus are busy",
            Cause::Memory => "the memory is busy",
            Cause::Order => "what comes before is not there yet",
            Cause::VirtualChannel => "no room in the virtual channel, or the output is busy",
            Cause::Room => "no room in the buffer behind",
            Cause::Slot => "no NAP slot or event record is free",
        }
    }
}

impl fmt::Display for Stage {
    /// Its name in words joined by hyphens, as in JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl fmt::Display for Cause {
    /// Its name in words joined by hyphens, as in JSON.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// One interval of an operation: `stage` served it, or it waited there for `cause`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    operation: u32,
    /// `None` for the whole operation, else the number of its packet or read.
    part: Option<u32>,
    stage: Stage,
    cause: Option<Cause>,
    until: Time,
}

/// The part of send events in the journal; no packet has this number.
pub const SEND_EVENT: u32 = u32::MAX;

/// An interval of an operation, or of one of its parts, in one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The operation.
    pub operation: u32,
    /// Its packet; nothing before the packets.
    pub part: Option<u32>,
    /// Stage.
    pub stage: Stage,
    /// The cause of a wait; nothing if the stage was working.
    pub cause: Option<Cause>,
    /// When it begins.
    pub begins: Time,
    /// When it ends.
    pub ends: Time,
    /// Whether it is after a GET packet's trip, at the far node.
    pub after_get_trip: bool,
}

/// Collects marks while it is open; otherwise costs one branch.
#[derive(Default)]
pub struct Journal {
    marks: Option<Vec<Mark>>,
    cut: bool,
    frames: Option<Frames>,
}

impl Journal {
    /// Starts to collect marks.
    pub fn open(&mut self) {
        self.marks.get_or_insert_default();
    }

    /// Whether marks are collected.
    #[inline]
    pub(super) fn is_open(&self) -> bool {
        self.marks.is_some()
    }

    /// Notes that `operation`, or its `part`, was in `stage` until `until`, in service or waiting
    /// for `cause`.
    #[inline]
    pub(super) fn mark(
        &mut self,
        operation: u32,
        part: Option<u32>,
        stage: Stage,
        cause: Option<Cause>,
        until: Time,
    ) {
        if let Some(marks) = &mut self.marks {
            if marks.len() < MOST_NOTES {
                marks.push(Mark { operation, part, stage, cause, until });
            } else {
                self.cut = true;
            }
        }
    }

    /// Starts to record the traffic of links, for [`super::record::frames`].
    pub fn capture(&mut self) {
        self.frames.get_or_insert_default();
    }

    /// The recorded traffic of links; nothing if it was not recorded.
    pub fn frames(&self) -> Option<&Frames> {
        self.frames.as_ref()
    }

    /// Records a frame that is on a wire at `time`; `bytes` is called only if frames are recorded.
    #[inline]
    pub(super) fn frame(&mut self, time: Time, wire: Wire, bytes: impl FnOnce() -> Vec<u8>) {
        if let Some(frames) = &mut self.frames {
            frames.note(time, wire, bytes());
        }
    }

    /// Whether marks were dropped at the limit.
    pub fn is_cut(&self) -> bool {
        self.cut
    }

    /// All recorded steps of all operations and their packets, by operation, then part in order of
    /// time. `times` gives when an operation started, and when it was sent.
    ///
    /// Steps before the packets occur once. The packets of one operation overlap, and so do their
    /// steps.
    pub fn steps(&self, times: impl Fn(u32) -> (Time, Option<Time>)) -> Vec<Step> {
        let mut marks: Vec<Mark> = self.marks.iter().flatten().copied().collect();
        // In the order of `explain`; marks of the whole operation (no part) come first.
        marks.sort_by_key(|mark| {
            (mark.operation, mark.part, mark.until, mark.stage, mark.cause.is_some())
        });
        let mut steps: Vec<Step> = Vec::new();
        let (mut of, mut whole_until, mut at) = (None, Time::ZERO, Time::ZERO);
        for mark in marks {
            let Mark { operation, part, stage, cause, until } = mark;
            let (began, sent) = times(operation);
            if of != Some((operation, part)) {
                if of.is_none_or(|(before, _)| before != operation) {
                    whole_until = began;
                }
                of = Some((operation, part));
                at = match (part, stage) {
                    (None, _) => began,
                    (Some(SEND_EVENT), _) => sent.unwrap_or(began),
                    // Its data came with another packet's read, which includes the wait.
                    (Some(_), Stage::DataExtract) => until,
                    (Some(_), _) => whole_until,
                };
            }
            if part.is_none() {
                whole_until = until;
            }
            if until <= at {
                continue;
            }
            let (begins, ends) = (at, until);
            at = until;
            let before =
                steps.last_mut().filter(|step| (step.operation, step.part) == (operation, part));
            match before {
                Some(last) if last.stage == stage && last.cause == cause => last.ends = until,
                _ => {
                    let remote = steps.last().is_some_and(|step| {
                        step.operation == operation
                            && (step.after_get_trip || step.stage == Stage::GetTrip)
                    });
                    let after_get_trip = remote && stage != Stage::GetTrip;
                    let step = Step { operation, part, stage, cause, begins, ends, after_get_trip };
                    steps.push(step);
                }
            }
        }
        steps
    }

    /// The intervals of `operation` from `began` to `ended`, along its part `part`: adjacent, in
    /// order, and with the exact sum `ended - began`.
    pub fn explain(&self, operation: u32, part: u32, began: Time, ended: Time) -> Explanation {
        let mut marks: Vec<Mark> = self
            .marks
            .iter()
            .flatten()
            .filter(|mark| mark.operation == operation && mark.part.is_none_or(|of| of == part))
            .copied()
            .collect();
        // A wait that ends with the preceding service took no time.
        marks.sort_by_key(|mark| (mark.until, mark.stage, mark.cause.is_some()));
        let mut at = began;
        let mut intervals: Vec<Interval> = Vec::new();
        for mark in marks {
            let until = mark.until.min(ended);
            if until <= at {
                continue;
            }
            let (start, length) = (at - began, until - at);
            at = until;
            match intervals.last_mut() {
                Some(last) if last.stage == mark.stage && last.cause == mark.cause => {
                    last.length += length
                }
                _ => {
                    intervals.push(Interval { stage: mark.stage, cause: mark.cause, start, length })
                }
            }
        }
        Explanation { total: ended - began, intervals }
    }
}

/// Where the time of one operation went.
#[derive(Clone, Debug, Serialize)]
pub struct Explanation {
    /// From the processor's start of the operation to its end.
    pub total: Span,
    /// The intervals, in order.
    pub intervals: Vec<Interval>,
}

/// An interval in one stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Interval {
    /// Stage.
    pub stage: Stage,
    /// The cause of a wait; nothing if the stage was working.
    pub cause: Option<Cause>,
    /// From the operation's start to the beginning of this interval.
    pub start: Span,
    /// Duration.
    pub length: Span,
}

impl Explanation {
    /// Time in `stage`, working and waiting.
    pub fn time_in(&self, stage: Stage) -> Span {
        let inside = self.intervals.iter().filter(|interval| interval.stage == stage);
        inside.map(|interval| interval.length).sum()
    }

    /// Sum of all waits.
    pub(super) fn waited(&self) -> Span {
        let waits = self.intervals.iter().filter(|interval| interval.cause.is_some());
        waits.map(|interval| interval.length).sum()
    }

    /// Sum of all intervals; it equals the total if the journal is complete.
    pub fn accounted(&self) -> Span {
        self.intervals.iter().map(|interval| interval.length).sum()
    }
}

impl fmt::Display for Explanation {
    /// A table: stage, start, waits and service in nanoseconds; the last line is the sum.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<20} {:>11} {:>11} {:>11}   waits for",
            "stage", "start ns", "wait ns", "service ns"
        )?;
        for Interval { stage, cause, start, length } in &self.intervals {
            let (wait, service) =
                if cause.is_some() { (*length, Span::ZERO) } else { (Span::ZERO, *length) };
            let [start, wait, service] = [*start, wait, service].map(Span::as_ns);
            write!(f, "{stage:<20} {start:>11.3} {wait:>11.3} {service:>11.3}")?;
            match cause {
                Some(cause) => writeln!(f, "   {cause}")?,
                None => writeln!(f)?,
            }
        }
        let served = self.accounted() - self.waited();
        let [total, waited, served] = [self.total, self.waited(), served].map(Span::as_ns);
        writeln!(f, "{:<20} {total:>11.3} {waited:>11.3} {served:>11.3}", "end to end")
    }
}
