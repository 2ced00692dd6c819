//! Co-processors at the controller, and co-processors with data staged through host memory (B-08;
//! cHPP sections 1 and 2.2).

use super::Kind;
use super::single::{endpoint, fill, pattern, post};
use crate::chpp::host::{Notice, RingKind};
use crate::chpp::machine::{HostApi, Program};
use crate::chpp::{Config, Machine};
use crate::experiment::{Report, of_each_seed};
use crate::units::Span;

/// The paths: from node 2, a co-processor of host 0, to node 3, a co-processor of host 1.
pub(super) const DIRECT: &[u8] = &[2, 3];
pub(super) const STAGED: &[u8] = &[2, 0, 1, 3];

/// Data in flight from node to node, in pieces. The software of each node forwards a piece at the
/// event of its arrival.
struct Relay {
    way: &'static [u8],
    piece: u64,
    bytes: u64,
    arrived: u64,
    finished: Option<Span>,
}

impl Relay {
    fn send(&self, api: &mut HostApi<'_>, leg: usize, offset: u64) -> Result<(), String> {
        let (from, to) = (self.way[leg], self.way[leg + 1]);
        let at = |node: u8| api.free_memory(node.into(), 0) + offset;
        let (places, length) = ((at(from), at(to)), self.piece.min(self.bytes - offset));
        post(api, Kind::Put, (endpoint(from), endpoint(to)), places, length)
            .map_err(|error| error.to_string())?;
        Ok(())
    }
}

impl Program for Relay {
    fn notified(&mut self, notice: &Notice, api: &mut HostApi<'_>) {
        if notice.ring != RingKind::Receive {
            return;
        }
        let here = notice.node as u8;
        let leg = self.way.iter().position(|node| *node == here).unwrap_or(0);
        if leg + 1 == self.way.len() {
            self.arrived += notice.event.length;
        }
        if api.operations()[notice.operation as usize].landed_bytes
            < api.operations()[notice.operation as usize].bytes
        {
            return;
        }
        // The event has the address of the last packet; with the operation's length it gives the
        // beginning of the piece.
        let end = notice.event.address + notice.event.length - api.free_memory(here.into(), 0);
        let bytes = api.operations()[notice.operation as usize].bytes;
        if leg + 1 < self.way.len() {
            self.send(api, leg, end - bytes).expect("a piece was described before");
        } else if end == self.bytes {
            self.finished = Some(notice.time - crate::units::Time::ZERO);
        }
    }
}

/// Nanoseconds from the first post to the last byte's event at node 3.
pub(super) fn transfer(
    config: &Config,
    way: &'static [u8],
    bytes: u64,
    piece: u64,
    seed: u64,
) -> Result<f64, String> {
    if config.nodes() < 4 {
        return Err("two hosts and two co-processors are four nodes".to_owned());
    }
    let mut machine = Machine::new(config, seed).map_err(|error| error.to_string())?;
    let mut relay = Relay { way, piece, bytes, arrived: 0, finished: None };
    let mut api = machine.api();
    let source = api.free_memory(2, 0);
    fill(api.memory_mut(source, bytes as usize).ok_or("longer than the window")?);
    for offset in (0..bytes).step_by(piece as usize) {
        relay.send(&mut machine.api(), 0, offset)?;
    }
    machine.run_to_end(&mut relay).map_err(|stopped| stopped.to_string())?;
    machine.audit().map_err(|imbalance| imbalance.to_string())?;
    let api = machine.api();
    let target = api.memory(api.free_memory(3, 0), bytes as usize).ok_or("no target")?;
    if !target.iter().enumerate().all(|(at, byte)| *byte == pattern(at)) {
        return Err("the data is not what was sent".to_owned());
    }
    relay.finished.map(|span| span.as_ns()).ok_or_else(|| "the transfer did not end".to_owned())
}

pub(super) fn run(report: &mut Report) -> Result<(), String> {
    let config = Config::prototype();
    let (mut slower, mut thrice, mut pieces_help) = (true, true, true);
    for bytes in [64, 4096, 65536, 1 << 20] {
        let direct = transfer(&config, DIRECT, bytes, bytes, 1)?;
        let staged = transfer(&config, STAGED, bytes, bytes, 1)?;
        report.value(format!("{bytes} B, direct"), "ns", direct);
        report.value(format!("{bytes} B, staged"), "ns", staged);
        slower &= staged > direct;
        thrice &= (2.5..3.5).contains(&(staged / direct));
        if bytes > 65536 {
            // Pieces meet others that arrive: the seed decides which goes first.
            let in_pieces = of_each_seed(|seed| transfer(&config, STAGED, bytes, 32768, seed))?;
            let name = format!("{bytes} B, staged in pieces of 32 KiB");
            let in_pieces = report.drawn(name, "ns", &in_pieces).estimate();
            pieces_help = in_pieces.is_below(staged / 2.0) && in_pieces.is_above(direct);
        }
    }
    report.claim("staged takes longer than direct", slower);
    report.claim("namely as long as its three transfers", thrice);
    report.claim(
        "in pieces that follow each other it costs less, and still more than direct",
        pieces_help,
    );
    report.vary("a staged transfer of 4 KiB", &config, |config| {
        transfer(config, STAGED, 4096, 4096, 1)
    })
}
