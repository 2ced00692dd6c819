//! Handshakes in the names of others, with every answer that the attacker can give.

use super::frames::{Claim, LATEST};
use super::station::{From, HEARD, Station};
use bellwire_wire::frame::challenge::ChallengeBody;
use bellwire_wire::frame::finish::{RefuseBody, RefuseReason};
use bellwire_wire::frame::header::{FrameHeader, FrameKind, HEADER_BYTES};
use bellwire_wire::frame::open::OpenBody;
use bellwire_wire::frame::{FRAME_OVERHEAD_BYTES, FunctionId};
use std::collections::HashMap;

/// What came back.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Answers {
    /// Challenges.
    pub challenges: u64,
    /// Accepts: a link for the attacker, if it confirms.
    pub accepts: u64,
    /// Refusals, with their reasons.
    pub refusals: Vec<RefuseReason>,
    /// Frames of a link: something that was meant for the true owner of the name.
    pub stolen: u64,
    /// Bytes of all frames.
    pub bytes: u64,
}

/// An attacker that asks for a link in one name, again and again.
pub struct Assault {
    claim: Claim,
    from: From,
    /// Whether it confirms an Accept.
    pub confirms: bool,
    cookie: u64,
    /// What it got for it.
    pub answers: Answers,
}

impl Assault {
    /// From this address, with this claim.
    pub fn new(claim: Claim, from: From) -> Assault {
        Assault { claim, from, confirms: true, cookie: 0, answers: Answers::default() }
    }

    /// Asks once more, and answers what came back before.
    pub fn step(&mut self, station: &mut Station) {
        while let Some((at, frame)) = station.hear() {
            if at == self.from {
                self.take(station, &frame);
            }
        }
        station.send(self.from, &self.claim.open(self.cookie));
    }

    fn take(&mut self, station: &mut Station, frame: &[u8]) {
        let Some((header, body)) = parse(frame) else { return };
        let answers = &mut self.answers;
        answers.bytes += frame.len() as u64;
        match header.kind {
            FrameKind::Challenge => {
                answers.challenges += 1;
                self.cookie = ChallengeBody::parse(body).map_or(0, |body| body.cookie);
            }
            FrameKind::Accept => {
                answers.accepts += 1;
                if let (true, Ok(accepted)) = (self.confirms, OpenBody::parse(body)) {
                    station.send(self.from, &self.claim.confirm(&header, &accepted));
                }
            }
            FrameKind::Refuse => answers.refusals.extend(RefuseBody::parse(body).map(|r| r.reason)),
            FrameKind::Data | FrameKind::Acknowledge => answers.stolen += 1,
            _ => {}
        }
    }
}

/// Opens of thousands of made-up nodes. Half of them answer the Challenge; none confirms an Accept.
pub struct Flood {
    victim: FunctionId,
    first: u32,
    next: u32,
    claims: HashMap<u64, Claim>,
    is_silent: bool,
    /// What came back.
    pub answers: Answers,
}

impl Flood {
    /// Of nodes from number `first` on.
    pub fn new(first: u32, victim: u32) -> Flood {
        let victim = FunctionId { node: victim, function: 0 };
        Flood {
            victim,
            first,
            next: 0,
            claims: HashMap::new(),
            is_silent: false,
            answers: Answers::default(),
        }
    }

    /// The same, each Open from an address of its own, and no Challenge is answered.
    pub fn silent(first: u32, victim: u32) -> Flood {
        Flood { is_silent: true, ..Self::new(first, victim) }
    }

    /// One Open of the next node, and answers to the Challenges that came.
    pub fn step(&mut self, station: &mut Station) {
        let number = self.next;
        self.next += 1;
        let claim = Claim {
            name: FunctionId { node: self.first + number, function: 0 },
            victim: self.victim,
            incarnation: LATEST - u64::from(number),
            opening: 1,
            token: u64::from(number + 1) << 16,
        };
        if number.is_multiple_of(2) && !self.is_silent {
            self.claims.insert(claim.token, claim);
        }
        let address = if self.is_silent { HEARD + number } else { number / 2 % HEARD };
        station.send(From::MadeUp(address), &claim.open(0));
        while let Some((at, frame)) = station.hear() {
            let Some((header, body)) = parse(&frame) else { continue };
            self.answers.bytes += frame.len() as u64;
            match header.kind {
                FrameKind::Challenge => {
                    self.answers.challenges += 1;
                    let cookie = ChallengeBody::parse(body).map_or(0, |body| body.cookie);
                    if let Some(claim) = self.claims.remove(&header.token) {
                        station.send(at, &claim.open(cookie));
                    }
                }
                FrameKind::Accept => self.answers.accepts += 1,
                FrameKind::Refuse => {
                    self.answers.refusals.extend(RefuseBody::parse(body).map(|r| r.reason));
                }
                _ => {}
            }
        }
    }

    /// Opens that were sent without a cookie.
    pub fn count(&self) -> u32 {
        self.next
    }
}

/// Header and body of a frame, which may have padding behind it.
pub fn parse(frame: &[u8]) -> Option<(FrameHeader, &[u8])> {
    let header = FrameHeader::parse(frame).ok()?;
    let body = header.length as usize - FRAME_OVERHEAD_BYTES;
    Some((header, &frame[HEADER_BYTES..][..body]))
}
