//! The steps of the NIC agent: resource, stage, cost and successor of each (M-18, M-19; paper 3.2).
//!
//! The paper gives the numbers of stages and their work as a whole; the list of stages is our
//! choice:
//!
//! ```text
//! LANai4, 7 + 5 stages, one for each use of a resource, under locks
//!   send     1 take (processor)  2 prepare (processor)  3 fetch (host DMA)
//!            4 launch (processor)  5 transmit (send DMA)  6 conclude (processor)
//!            7 report (host DMA)
//!   receive  1 arrive (receive DMA)  2 match (processor)  3 deliver (host DMA)
//!            4 conclude (processor)  5 report (host DMA)
//! LANai9, 2 + 2 stages
//!   send     1 fetch and report: one DMA chain  2 transmit
//!   receive  1 arrive  2 deliver and report: one DMA chain
//! Berkeley VIA, one step after another
//!   take, descriptor DMA, parse and translate, prepare, fetch, launch, transmit, conclude, report
//! ```
//!
//! On LANai4 the firmware must notice that a DMA has ended before it unlocks the engine. The steps
//! `Fetched`, `Transmitted`, `Reported` and `Delivered` are the ends of stages 3, 5, 7 and 3, 5.

use super::config::{Pipeline, Setup, Translation};
use super::memory::Extent;
use crate::units::Time;

/// A resource. One step at a time uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unit {
    /// The NIC's processor.
    Processor,
    /// Between host and NIC, one channel for both directions.
    HostDma,
    /// From the NIC to the network.
    SendDma,
    /// From the network to the NIC.
    ReceiveDma,
}

/// Number of units.
pub const UNITS: usize = 4;

/// A work queue, and the pipeline that serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Send.
    Send,
    /// Receive.
    Receive,
}

macro_rules! steps {
    ($(#[$doc:meta] $step:ident,)*) => {
        /// A step of a job on the NIC.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Step {
            $(#[$doc] $step,)*
        }

        /// All steps, in order.
        pub const STEPS: [Step; 21] = [$(Step::$step,)*];
    };
}

steps! {
    /// Finds a descriptor or doorbell.
    Take,
    /// Reads a descriptor from host memory.
    Descriptor,
    /// Parses it and translates its addresses.
    Parse,
    /// Finds a buffer and starts the host DMA.
    Prepare,
    /// Moves data from host memory.
    Fetch,
    /// Notices its end.
    Fetched,
    /// Makes the header and starts the send DMA.
    Launch,
    /// Moves data to the network.
    Transmit,
    /// Notices its end.
    Transmitted,
    /// Makes the status word.
    Conclude,
    /// Writes it to host memory.
    Report,
    /// Notices its end.
    Reported,
    /// Moves data from the network.
    Arrive,
    /// Finds the VI and its descriptor.
    Match,
    /// Reads the descriptor from host memory.
    ReceiveDescriptor,
    /// Parses it and translates its addresses.
    ReceiveParse,
    /// Moves data to host memory.
    Deliver,
    /// Notices its end.
    Delivered,
    /// Makes the status word.
    ReceiveConclude,
    /// Writes it to host memory.
    ReceiveReport,
    /// Notices its end.
    ReceiveReported,
}

/// A packet in the NIC.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its pipeline.
    pub side: Side,
    /// VI on this host.
    pub vi: u16,
    /// Its operation; `None` for a packet without a descriptor.
    pub operation: Option<u16>,
    /// Number of the message on its VI, counted by the sender.
    pub message: u64,
    /// Bytes of the message.
    pub total: u32,
    /// Offset of this packet's data in the message.
    pub offset: u32,
    /// Bytes of this packet's data.
    pub length: u32,
    /// Whether this is the message's last packet.
    pub last: bool,
    /// Start of its buffer in the NIC's memory.
    pub buffer: Option<u32>,
    /// The pieces that its host DMA moves.
    pub extents: Vec<Extent>,
    /// When it entered its current queue.
    pub entered: Time,
    /// Its number in the journal.
    pub serial: u64,
}

impl Job {
    /// Whether this is the message's first packet.
    pub fn first(&self) -> bool {
        self.offset == 0
    }

    fn further_pieces(&self) -> u64 {
        self.extents.len().saturating_sub(1) as u64
    }
}

impl Step {
    /// The resource that it uses.
    pub const fn unit(self) -> Unit {
        match self {
            Step::Descriptor
            | Step::Fetch
            | Step::Report
            | Step::ReceiveDescriptor
            | Step::Deliver
            | Step::ReceiveReport => Unit::HostDma,
            Step::Transmit => Unit::SendDma,
            Step::Arrive => Unit::ReceiveDma,
            _ => Unit::Processor,
        }
    }

    /// Its pipeline.
    pub fn side(self) -> Side {
        if self < Step::Arrive { Side::Send } else { Side::Receive }
    }

    /// The engine that the processor locks before this step, on LANai4.
    pub const fn locks(self) -> Option<Unit> {
        match self {
            Step::Prepare | Step::Conclude | Step::Match | Step::ReceiveConclude => {
                Some(Unit::HostDma)
            }
            Step::Launch => Some(Unit::SendDma),
            _ => None,
        }
    }

    /// The engine that is unlocked after this step, on LANai4.
    pub const fn unlocks(self) -> Option<Unit> {
        match self {
            Step::Fetched | Step::Reported | Step::Delivered | Step::ReceiveReported => {
                Some(Unit::HostDma)
            }
            Step::Transmitted => Some(Unit::SendDma),
            _ => None,
        }
    }

    /// The stage, counted from 1 in its pipeline; 0 where work is not divided into stages.
    pub const fn stage(self, pipeline: Pipeline) -> u8 {
        match (pipeline, self) {
            (Pipeline::Locked, Step::Take | Step::Arrive) => 1,
            (Pipeline::Locked, Step::Prepare | Step::Match) => 2,
            (Pipeline::Locked, Step::Fetch | Step::Fetched | Step::Deliver | Step::Delivered) => 3,
            (Pipeline::Locked, Step::Launch | Step::ReceiveConclude) => 4,
            (Pipeline::Locked, Step::Transmit | Step::Transmitted) => 5,
            (Pipeline::Locked, Step::ReceiveReport | Step::ReceiveReported) => 5,
            (Pipeline::Locked, Step::Conclude) => 6,
            (Pipeline::Locked, Step::Report | Step::Reported) => 7,
            (Pipeline::Chained, Step::Prepare | Step::Fetch | Step::Arrive) => 1,
            (Pipeline::Chained, Step::Launch | Step::Transmit | Step::Match | Step::Deliver) => 2,
            _ => 0,
        }
    }

    /// The first step of an outgoing packet.
    pub const fn first(pipeline: Pipeline, first_packet: bool) -> Step {
        match pipeline {
            Pipeline::Locked => Step::Take,
            Pipeline::Serial if first_packet => Step::Take,
            Pipeline::Serial => Step::Parse,
            Pipeline::Chained => Step::Prepare,
            Pipeline::Hardware => Step::Fetch,
        }
    }

    /// The next step; `None` after the last.
    pub fn next(self, pipeline: Pipeline, job: &Job) -> Option<Step> {
        use Pipeline::{Chained, Hardware, Locked, Serial};
        match (pipeline, self) {
            (Serial, Step::Take) => Some(Step::Descriptor),
            (_, Step::Take) => Some(Step::Prepare),
            (_, Step::Descriptor) => Some(Step::Parse),
            (_, Step::Parse) => Some(Step::Prepare),
            (_, Step::Prepare) => Some(Step::Fetch),
            (Locked, Step::Fetch) => Some(Step::Fetched),
            (Hardware, Step::Fetch) => Some(Step::Transmit),
            (_, Step::Fetch | Step::Fetched) => Some(Step::Launch),
            (_, Step::Launch) => Some(Step::Transmit),
            (Locked, Step::Transmit) => Some(Step::Transmitted),
            (Chained, Step::Transmit) => None,
            (Hardware, Step::Transmit) => job.last.then_some(Step::Report),
            (_, Step::Transmit | Step::Transmitted) => job.last.then_some(Step::Conclude),
            (_, Step::Conclude) => Some(Step::Report),
            (Locked, Step::Report) => Some(Step::Reported),
            (_, Step::Report | Step::Reported) => None,
            (Hardware, Step::Arrive) => Some(Step::Deliver),
            (_, Step::Arrive) => Some(Step::Match),
            (Serial, Step::Match) if job.first() => Some(Step::ReceiveDescriptor),
            (Serial, Step::Match) => Some(Step::ReceiveParse),
            (_, Step::Match) => Some(Step::Deliver),
            (_, Step::ReceiveDescriptor) => Some(Step::ReceiveParse),
            (_, Step::ReceiveParse) => Some(Step::Deliver),
            (Locked, Step::Deliver) => Some(Step::Delivered),
            (Chained | Hardware, Step::Deliver) => None,
            (_, Step::Deliver | Step::Delivered) => job.last.then_some(Step::ReceiveConclude),
            (_, Step::ReceiveConclude) => Some(Step::ReceiveReport),
            (Locked, Step::ReceiveReport) => Some(Step::ReceiveReported),
            (_, Step::ReceiveReport | Step::ReceiveReported) => None,
        }
    }

    /// Instructions of a processor's step, without locks; `pages` are those that the NIC must
    /// translate.
    pub fn instructions(self, setup: &Setup, job: &Job, pages: u64) -> u64 {
        let firmware = &setup.firmware;
        let start = firmware.prepare + firmware.piece * job.further_pieces();
        // Serial firmware translates when it parses.
        let by_table = match (setup.system.pipeline, setup.system.translation) {
            (Pipeline::Serial, _) => 0,
            (_, Translation::NicTable) => firmware.translate * pages,
            _ => 0,
        };
        let parse = firmware.translate * pages + if job.first() { firmware.descriptor } else { 0 };
        match (setup.system.pipeline, self) {
            (_, Step::Take) => firmware.take,
            (_, Step::Parse) => parse,
            // One chain serves data and status word (M-19).
            (Pipeline::Chained, Step::Prepare) => {
                firmware.take + start + by_table + firmware.conclude
            }
            (_, Step::Prepare) => start + by_table,
            (_, Step::Launch) => firmware.launch,
            (_, Step::Conclude | Step::ReceiveConclude) => firmware.conclude,
            (Pipeline::Chained, Step::Match) => {
                firmware.match_packet + start + by_table + firmware.conclude
            }
            (Pipeline::Locked, Step::Match) => firmware.match_packet + start + by_table,
            (_, Step::Match) => firmware.match_packet,
            (_, Step::ReceiveParse) => parse + start,
            _ => firmware.notice,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use super::super::config::Firmware;

    fn job(offset: u32, pieces: usize) -> Job {
        let extents = vec![Extent { address: 0, length: 1 }; pieces];
        Job {
            side: Side::Send,
            vi: 0,
            operation: None,
            message: 0,
            total: 100,
            offset,
            length: 1,
            last: true,
            buffer: None,
            extents,
            entered: Time::ZERO,
            serial: 0,
        }
    }

    /// Each cost is another digit, so that a sum says what it is made of. Three pieces are one and
    /// two further ones; four pages are translated.
    #[test]
    fn steps_cost_what_they_do() {
        let mut setup = Setup::paper("myvia-a").unwrap();
        setup.firmware = Firmware {
            take: 1,
            descriptor: 10,
            translate: 100,
            prepare: 1000,
            piece: 10_000,
            launch: 100_000,
            conclude: 1_000_000,
            match_packet: 10_000_000,
            notice: 100_000_000,
            lock: 1_000_000_000,
        };
        use Step::*;
        use Translation::{NicCache, NicTable, User};
        let same = [
            (Take, 1),
            (Launch, 100_000),
            (Conclude, 1_000_000),
            (ReceiveConclude, 1_000_000),
            (Fetched, 100_000_000),
            (Transmitted, 100_000_000),
            (Reported, 100_000_000),
        ];
        // Prepare and match by pipeline and translation.
        for (pipeline, translation, prepare, matches) in [
            (Pipeline::Locked, User, 21_000, 10_021_000),
            (Pipeline::Locked, NicTable, 21_400, 10_021_400),
            (Pipeline::Chained, User, 1_021_001, 11_021_000),
            (Pipeline::Chained, NicTable, 1_021_401, 11_021_400),
            (Pipeline::Serial, NicCache, 21_000, 10_000_000),
            (Pipeline::Serial, NicTable, 21_000, 10_000_000),
            (Pipeline::Serial, User, 21_000, 10_000_000),
        ] {
            (setup.system.pipeline, setup.system.translation) = (pipeline, translation);
            let costs = |step: Step, offset: u32| step.instructions(&setup, &job(offset, 3), 4);
            for (step, cost) in same.into_iter().chain([(Prepare, prepare), (Match, matches)]) {
                assert_eq!(costs(step, 0), cost, "{step:?} of {pipeline:?} by {translation:?}");
            }
            // The descriptor is parsed with the first packet only.
            assert_eq!((costs(Parse, 0), costs(Parse, 50)), (410, 400));
            assert_eq!((costs(ReceiveParse, 0), costs(ReceiveParse, 50)), (21_410, 21_400));
        }
        assert_eq!(Prepare.instructions(&setup, &job(0, 1), 0), 1000);
        assert_eq!(Prepare.instructions(&setup, &job(0, 0), 0), 1000);
    }

    /// A packet passes the steps of its pipeline, one after another.
    #[test]
    fn packets_pass_all_steps() {
        use Step::*;
        let path = |pipeline, first: Step, offset, last| {
            let job = Job { last, ..job(offset, 1) };
            std::iter::successors(Some(first), |step| step.next(pipeline, &job)).collect::<Vec<_>>()
        };
        let sends = |pipeline, offset, last| {
            path(pipeline, Step::first(pipeline, offset == 0), offset, last)
        };
        let middle = [Take, Prepare, Fetch, Fetched, Launch, Transmit, Transmitted];
        assert_eq!(sends(Pipeline::Locked, 0, false), middle);
        let end = [Conclude, Report, Reported];
        assert_eq!(sends(Pipeline::Locked, 9, true), [&middle[..], &end].concat());
        assert_eq!(sends(Pipeline::Chained, 0, true), [Prepare, Fetch, Launch, Transmit]);
        assert_eq!(
            sends(Pipeline::Serial, 0, true),
            [Take, Descriptor, Parse, Prepare, Fetch, Launch, Transmit, Conclude, Report]
        );
        assert_eq!(
            sends(Pipeline::Serial, 9, false),
            [Parse, Prepare, Fetch, Launch, Transmit],
            "only the first packet has its descriptor read"
        );
        assert_eq!(sends(Pipeline::Hardware, 0, true), [Fetch, Transmit, Report]);
        assert_eq!(sends(Pipeline::Hardware, 0, false), [Fetch, Transmit]);
        assert_eq!(
            path(Pipeline::Locked, Arrive, 0, true),
            [Arrive, Match, Deliver, Delivered, ReceiveConclude, ReceiveReport, ReceiveReported]
        );
        assert_eq!(path(Pipeline::Locked, Arrive, 0, false), [Arrive, Match, Deliver, Delivered]);
        assert_eq!(path(Pipeline::Chained, Arrive, 0, true), [Arrive, Match, Deliver]);
        assert_eq!(path(Pipeline::Hardware, Arrive, 0, true), [Arrive, Deliver]);
        assert_eq!(
            path(Pipeline::Serial, Arrive, 0, true)[1..4],
            [Match, ReceiveDescriptor, ReceiveParse]
        );
        assert_eq!(
            path(Pipeline::Serial, Arrive, 9, true)[1..],
            [Match, ReceiveParse, Deliver, ReceiveConclude, ReceiveReport]
        );
    }

    /// Stages are the page's, locks are taken before the steps that start an engine, and each lock
    /// ends with the step that notices its end.
    #[test]
    fn stages_and_locks_are_those_of_the_page() {
        let stages = |pipeline| STEPS.map(|step| step.stage(pipeline));
        assert_eq!(
            stages(Pipeline::Locked),
            [1, 0, 0, 2, 3, 3, 4, 5, 5, 6, 7, 7, 1, 2, 0, 0, 3, 3, 4, 5, 5]
        );
        assert_eq!(
            stages(Pipeline::Chained),
            [0, 0, 0, 1, 1, 0, 2, 2, 0, 0, 0, 0, 1, 2, 0, 0, 2, 0, 0, 0, 0]
        );
        assert_eq!(stages(Pipeline::Serial), [0; 21]);
        let locked = |unit| STEPS.into_iter().filter(move |step| step.locks() == Some(unit));
        let unlocked = |unit| STEPS.into_iter().filter(move |step| step.unlocks() == Some(unit));
        use Step::*;
        assert!(locked(Unit::HostDma).eq([Prepare, Conclude, Match, ReceiveConclude]));
        assert!(unlocked(Unit::HostDma).eq([Fetched, Reported, Delivered, ReceiveReported]));
        assert!(locked(Unit::SendDma).eq([Launch]) && unlocked(Unit::SendDma).eq([Transmitted]));
    }
}
