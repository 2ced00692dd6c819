//! Finding a node by the name of its host.

use crate::frame_io::FrameIo;
use bellwire_device::{Address, Error};
use bellwire_protocol::discovery::seek::{self, ANY_NODE, SeekFrame};
use bellwire_wire::frame::seek::SeekBody;
use std::net::{IpAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

/// Pause between two questions to the same address.
const PAUSE: Duration = Duration::from_millis(50);
/// An unlimited patience is limited to this.
const DAY: Duration = Duration::from_secs(86_400);

/// One search for a host that has a function: how long it may take, and what was tried.
pub(crate) struct Lookup {
    name: String,
    function: u8,
    since: Instant,
    patience: Duration,
    /// Deadline of the station that is asked now.
    until: Instant,
    /// Our guess of the node's number, for the error.
    pub guess: u32,
    tried: Vec<String>,
}

impl Lookup {
    pub fn new(name: &str, function: u8, patience: Duration) -> Lookup {
        let (name, since, patience) = (name.to_owned(), Instant::now(), patience.min(DAY));
        let until = since + patience;
        Lookup { name, function, since, patience, until, guess: 0, tried: Vec::new() }
    }

    /// Records a failed attempt.
    pub fn note(&mut self, what: String) {
        self.tried.push(what);
    }

    /// Gives the next station one of `parts` equal shares of the whole time.
    pub fn share(&mut self, parts: u32) {
        let (now, share) = (Instant::now(), self.patience / parts.max(1));
        // Every station is asked at least once.
        self.until = (now + share).min(self.since + self.patience).max(now + PAUSE);
    }

    /// The remaining time.
    pub fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }

    pub fn failure(self) -> Error {
        let tried =
            if self.tried.is_empty() { "nothing".to_owned() } else { self.tried.join("; ") };
        Error::Unreachable {
            peer: Address::new(self.guess, self.function, 0),
            waited_ms: self.since.elapsed().as_millis() as u64,
            tried: format!(
                "\"{}\" was looked up and tried as follows: {tried}. See that the peer has this function open and polls it, and that both have a key or neither has",
                self.name
            ),
        }
    }

    /// The IP addresses of the host name.
    pub fn addresses(&mut self) -> Vec<IpAddr> {
        match (self.name.trim_matches(['[', ']']), 0).to_socket_addrs() {
            Ok(found) => {
                let found: Vec<IpAddr> = found.map(|address| address.ip()).collect();
                if let Some(IpAddr::V4(first)) = found.first() {
                    self.guess = (*first).into();
                }
                found
            }
            Err(error) => {
                self.note(format!("it means no IP address ({error})"));
                Vec::new()
            }
        }
    }

    /// Repeatedly asks `to` for its node number; the answer goes to function `answer_to` of our
    /// node `own`. Returns the node and the address that answered.
    pub fn ask<Io: FrameIo>(
        &mut self,
        mut io: Io,
        own: u32,
        answer_to: u8,
        to: Io::Path,
    ) -> Option<(u32, Io::Path)> {
        let mut questions = 0;
        let nonce = bellwire_device::random();
        while !self.left().is_zero() {
            let frame_bytes = io.frame_bytes() as u32;
            let body = SeekBody { from: own, to: ANY_NODE, frame_bytes, nonce };
            if let Some(room) = io.room() {
                seek::emit(SeekFrame::Seek(body), answer_to, self.function, room);
                io.stage(to, seek::FRAME_BYTES);
                io.flush();
                questions += 1;
            }
            let until = Instant::now() + PAUSE.min(self.left());
            let mut found = None;
            while found.is_none() && Instant::now() < until {
                let got = io.receive(16, |from, bytes| {
                    // Only the asked station knows the nonce, and only its address may answer.
                    if let Some((SeekFrame::Here(body), _)) = seek::parse(bytes)
                        && (body.nonce, from) == (nonce, to)
                    {
                        found = Some((body.from, from));
                    }
                });
                if got == 0 {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
            if found.is_some() {
                return found;
            }
        }
        self.note(format!("{to}: {questions} questions, no answer"));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each station has its share of what is left, and at least one pause for an answer.
    #[test]
    fn stations_share_the_time() {
        let long = Duration::from_secs(1000);
        let mut lookup = Lookup::new("host", 1, long);
        assert!(lookup.left() > long / 2 && lookup.left() <= long);
        for parts in [2, 4] {
            lookup.share(parts);
            assert!(lookup.left() <= long / parts && lookup.left() > long / 10);
        }
        lookup.share(0);
        assert!(lookup.left() > long / 2 && lookup.until <= lookup.since + long);
        let mut hasty = Lookup::new("host", 1, Duration::ZERO);
        assert!(hasty.left().is_zero());
        hasty.share(3);
        assert!(hasty.until >= hasty.since + PAUSE);
    }

    /// A name without an address says so, and one with an address gives the node that it means.
    #[test]
    fn names_mean_addresses() {
        let mut known = Lookup::new("127.0.0.5", 1, PAUSE);
        assert_eq!(known.addresses(), ["127.0.0.5".parse::<IpAddr>().expect("an address")]);
        assert_eq!(known.guess, 0x7f00_0005);
        let mut sixth = Lookup::new("[::1]", 1, PAUSE);
        assert_eq!(sixth.addresses(), ["::1".parse::<IpAddr>().expect("an address")]);
        let mut bad = Lookup::new("no host has a space", 1, PAUSE);
        assert_eq!(bad.addresses(), [] as [IpAddr; 0]);
        let said = bad.failure().to_string();
        assert!(said.contains("no IP address"), "{said}");
    }
}
