//! Where the time of an operation goes, by what moves between the blocks of the interfaces and at
//! their ports. Stages are those of the event-driven machine.

use super::{In, Out};
use crate::chpp::experiments::Kind;
use crate::chpp::journal::{Explanation, Interval, Stage};
use crate::cycle::nic_core::Taps;
use crate::units::{Span, Time};

/// When what has moved at a node, in order.
#[derive(Clone, Default)]
pub struct Marks {
    /// Beats of the host.
    comes: Vec<Time>,
    /// First beats of TLPs for the host.
    goes: Vec<Time>,
    is_mid: bool,
    bell: Vec<Time>,
    start: Vec<Time>,
    word: Vec<Time>,
    data: Vec<Time>,
    pack: Vec<Time>,
    /// Beats of the network.
    arrives: Vec<Time>,
    dispatch: Vec<Time>,
    upload: Vec<Time>,
    /// Bytes that are no event have become visible in memory.
    pub lands: Vec<Time>,
}

impl Marks {
    /// Notes what moved in the cycle that the edge at `time` ends.
    pub fn note(&mut self, time: Time, (input, out): (&In, &Out), taps: Taps) {
        let goes = out.tx_valid && input.tx_ready;
        let arrives = input.from_valid && out.from_ready[usize::from(input.from_class)];
        for (moves, times) in [
            (input.rx_valid && out.rx_ready, &mut self.comes),
            (goes && !self.is_mid, &mut self.goes),
            (taps.bell, &mut self.bell),
            (taps.start, &mut self.start),
            (taps.word, &mut self.word),
            (taps.data, &mut self.data),
            (taps.pack, &mut self.pack),
            (arrives, &mut self.arrives),
            (taps.dispatch, &mut self.dispatch),
            (taps.upload, &mut self.upload),
        ] {
            if moves {
                times.push(time);
            }
        }
        if goes {
            self.is_mid = !out.tx_last;
        }
    }
}

/// Where the time of one operation between two idle nodes went, which began and ended then. The
/// processor took so long, and the descriptor was fetched by so many reads. A stage ends with the
/// last thing that moves out of it, so what stages do at once counts for the first one.
pub fn explain(
    kind: Kind,
    [near, far]: [&Marks; 2],
    (began, ended): (Time, Time),
    (processor, reads): (Span, usize),
) -> Explanation {
    let is_get = kind == Kind::Get;
    let (from, to) = if is_get { (far, near) } else { (near, far) };
    let first = |times: &[Time]| times.first().copied();
    let last = |times: &[Time]| times.last().copied();
    let asked = first(&near.goes);
    let back = near.comes.iter().find(|&&time| asked.is_some_and(|asked| time > asked)).copied();
    let is_inside = kind == Kind::NapImmediate;
    // The first read of data is the one behind those of the descriptor.
    let asks = from.goes.get(if is_get { 0 } else { reads }).copied().filter(|_| !is_inside);
    let ends = [
        (Stage::Processor, Some(began + processor)),
        (Stage::DoorbellWrite, first(&near.comes)),
        (Stage::Doorbell, first(&near.bell)),
        (Stage::Arbiter, first(&near.start)),
        (Stage::DescriptorRead, asked),
        (Stage::DescriptorMemory, if is_inside { last(&near.comes) } else { back }),
        (Stage::DescriptorExtract, last(&near.word)),
        (Stage::GetTrip, if is_get { last(&far.arrives) } else { None }),
        (Stage::DataRead, asks),
        (Stage::DataMemory, if is_inside { None } else { last(&from.comes) }),
        (Stage::DataReorder, last(&from.data)),
        (Stage::Packer, last(&from.pack)),
        (Stage::Crossbar, last(&to.arrives)),
        (Stage::Dispatch, last(&to.dispatch)),
        (Stage::Upload, last(&to.upload)),
        (Stage::DataWrite, last(&to.lands)),
        (Stage::EventWrite, Some(ended)),
    ];
    let mut intervals = Vec::new();
    let mut at = began;
    for (stage, end) in ends {
        let Some(end) = end.map(|end| end.min(ended)).filter(|&end| end > at) else { continue };
        intervals.push(Interval { stage, cause: None, start: at - began, length: end - at });
        at = end;
    }
    Explanation { total: ended - began, intervals }
}
