//! A sender that has not proved its address is answered by no more bytes than it sent.

use super::assault::parse;
use super::frames::{Claim, seek};
use super::ground::{Ground, PEER, VICTIM};
use super::station::From;
use super::witness::{Witness, exchange};
use crate::conformance::Patience;
use crate::network::Carrier;
use bellwire_wire::frame::header::FrameKind;
use std::time::{Duration, Instant};

/// How long answers are counted. A half-open link would repeat its own after 5 ms, 15 ms and so on.
const QUIET: Duration = Duration::from_millis(500);
/// Messages of an honest peer in that time, at least.
const MESSAGES: u32 = 50;

/// One frame of each kind that is answered.
pub fn single_frames(carrier: Carrier) {
    let ground = Ground::new(carrier);
    let mut stage = ground.stage([ground.open(VICTIM, None), ground.open(PEER, None)]);
    let witness = Witness::of(&stage.nodes[VICTIM]);
    let node = stage.nodes[VICTIM].device.node();
    exchange(&mut stage, [VICTIM, PEER]);
    let claim = Claim::latest(ground.chosen(9), node);
    let mut wrong = claim;
    wrong.victim.node = ground.chosen(10);
    // Frames, their answers, and what counts them.
    let cases = [
        ("Open", claim.open(0), FrameKind::Challenge, "frames_challenged"),
        ("Open with a guessed cookie", claim.open(1), FrameKind::Challenge, "frames_challenged"),
        ("Open for another node", wrong.open(0), FrameKind::Refuse, ""),
        ("Seek", seek(node, ground.chosen(9)), FrameKind::Here, ""),
        ("Data", claim.frame(FrameKind::Data, 1 << 20, &[]), FrameKind::Unknown, "frames_unknown"),
        (
            "Acknowledge",
            claim.frame(FrameKind::Acknowledge, 1 << 20, &[]),
            FrameKind::Unknown,
            "frames_unknown",
        ),
    ];
    let mut station = ground.hostile();
    for (what, frame, answer, counter) in cases {
        let [before] = witness.now(&mut stage, [counter]);
        station.send(From::Own, &frame);
        let (mut heard, mut messages, mut bytes) = (Vec::new(), 0, 0);
        let (since, mut patience) = (Instant::now(), Patience::new());
        while since.elapsed() < QUIET || messages < MESSAGES || heard.is_empty() {
            exchange(&mut stage, [VICTIM, PEER]);
            messages += 1;
            while let Some((_, answer)) = station.hear() {
                let (header, _) = parse(&answer).expect("a frame");
                heard.push(header.kind);
                bytes += usize::from(header.length);
            }
            patience.spend(|| format!("{what} is not answered"));
        }
        assert_eq!(heard, [answer], "{what}");
        assert!(bytes <= frame.len(), "{what}: {bytes} bytes for {}", frame.len());
        let [after] = witness.now(&mut stage, [counter]);
        assert!(after > before || counter.is_empty(), "{what}: {counter}");
    }
}
