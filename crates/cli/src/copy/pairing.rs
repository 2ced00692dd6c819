//! The exchange of a code, by a function without a key that carries nothing else.
//!
//! Whoever proves the code gets a key, and the copy goes by another function, sealed under it. A
//! wrong code is counted, and the next one has to wait.

use super::door::Door;
use super::link::{ACQUAINTANCE, AGAIN, NUMBER, PAIRING, SENDER, open_function};
use crate::host::{asked, node_of};
use crate::talk::{Queue, post_text, refusal, successful};
use anyhow::{Context, Result, anyhow, bail};
use bellwire::{Address, ConnectionRequest, Device, Error, Function, Listener, Wait};
use bellwire_keys::{Code, KEY_BYTES, Key, Pairing, Side};
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Begins a request; the message of the exchange follows. Its number is the version.
const GREETING: &[u8] = b"bellwire pairing 1:";

/// Bytes of the longest message after it.
const MESSAGE_BYTES: usize = 1024;

/// Messages in each direction.
const DEPTH: usize = 4;

/// A sender that has asked has this time to prove its code.
const PROOF: Duration = Duration::from_secs(5);

/// How long the first wrong code keeps others waiting. Each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// It does not become longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(32);

/// The refusal of a request while a copy runs.
const TAKEN: &[u8] = b"taken";

/// The refusal of a request after a wrong code.
const PAUSE: &[u8] = b"pause";

/// What the sides say once they have each other's message.
#[derive(Serialize, Deserialize)]
enum Told {
    Proof([u8; KEY_BYTES]),
    /// The code was wrong.
    Wrong {
        /// How many were, with this one.
        count: u64,
        /// When the next code is taken.
        pause_ms: u64,
    },
}

/// How long the wrong code number `count` keeps others waiting.
fn pause_after(count: u64) -> Duration {
    let doublings = u32::try_from(count.saturating_sub(1)).unwrap_or(u32::MAX).min(16);
    (FIRST_PAUSE * 2_u32.pow(doublings)).min(LONGEST_PAUSE)
}

/// The listener's side.
pub struct Porch {
    function: Function,
    listener: Listener,
    /// Wrong codes so far.
    wrong: u64,
    /// Until then no code is looked at.
    closed_until: Instant,
}

/// A sender that knows the code, and waits for our proof.
pub struct Guest {
    pub key: Key,
    queue: Queue,
    proof: [u8; KEY_BYTES],
}

/// A wrong code.
pub struct Wrong {
    pub node: u32,
    pub count: u64,
    pub pause: Duration,
}

impl Porch {
    pub fn open(device: &Device) -> Result<Porch> {
        let mut function = device.open_function(PAIRING)?;
        let listener = function.listen(NUMBER)?;
        Ok(Porch { function, listener, wrong: 0, closed_until: Instant::now() })
    }

    /// Waits for a sender that proves `code`. `wrong` hears of each one that does not.
    pub fn wait_for(&mut self, code: &Code, mut wrong: impl FnMut(Wrong)) -> Result<Guest> {
        loop {
            let hour = Duration::from_secs(3600);
            let request = match self.function.wait_request(self.listener, Wait::Block, hour) {
                Err(Error::TimedOut { .. }) => continue,
                request => request?,
            };
            if let Some(guest) = self.examine(request, code, &mut wrong)? {
                return Ok(guest);
            }
        }
    }

    fn examine(
        &mut self,
        request: ConnectionRequest,
        code: &Code,
        wrong: &mut impl FnMut(Wrong),
    ) -> Result<Option<Guest>> {
        let node = request.peer.node;
        // Here and below: a sender that is gone needs no answer.
        let Some(theirs) = request.private_data.strip_prefix(GREETING).map(<[u8]>::to_vec) else {
            let _ = self.function.reject(request, refusal(GREETING).as_bytes());
            return Ok(None);
        };
        if Instant::now() < self.closed_until {
            let _ = self.function.reject(request, PAUSE);
            return Ok(None);
        }
        let pairing = Pairing::begin(code, Side::Listener);
        let ours = *pairing.message();
        let Some(paired) = pairing.finish(&theirs) else {
            let _ = self.function.reject(request, refusal(GREETING).as_bytes());
            return Ok(None);
        };
        let queue = Queue::create(&mut self.function, DEPTH)?;
        queue.post_receive(&mut self.function, MESSAGE_BYTES)?;
        let accepted = self.function.accept(request, queue.pair, &ours);
        let heard = accepted
            .map_err(anyhow::Error::from)
            .and_then(|()| queue.hear(&mut self.function, MESSAGE_BYTES, Wait::Block, Some(PROOF)));
        let proof = paired.proof();
        // Who is silent has learned nothing of the code: our message does not depend on it.
        let key = match heard {
            Ok(Told::Proof(theirs)) => paired.confirm(&theirs),
            Ok(Told::Wrong { .. }) | Err(_) => {
                self.part(queue)?;
                return Ok(None);
            }
        };
        if let Some(key) = key {
            return Ok(Some(Guest { key, queue, proof }));
        }
        self.wrong += 1;
        let (count, pause) = (self.wrong, pause_after(self.wrong));
        self.closed_until = Instant::now() + pause;
        let _ = self.say(queue, &Told::Wrong { count, pause_ms: pause.as_millis() as u64 });
        self.part(queue)?;
        wrong(Wrong { node, count, pause });
        Ok(None)
    }

    /// Proves to the sender that we have the key. The device with the key must be open.
    pub fn welcome(&mut self, guest: &Guest) -> Result<()> {
        // A sender that is gone does not come.
        let _ = self.say(guest.queue, &Told::Proof(guest.proof));
        self.part(guest.queue)
    }

    /// Refuses all who ask while a copy runs.
    pub fn turn_away(&mut self) -> Result<()> {
        while let Some(request) = self.function.poll_request(self.listener)? {
            let _ = self.function.reject(request, TAKEN);
        }
        Ok(())
    }

    /// Sends a message, and waits until it has arrived.
    fn say(&mut self, queue: Queue, message: &Told) -> Result<()> {
        say(&mut self.function, queue, message)
    }

    /// Ends a connection and frees its queues.
    fn part(&mut self, queue: Queue) -> Result<()> {
        self.function.destroy_queue_pair(queue.pair)?;
        self.function.destroy_completion_queue(queue.sends)?;
        self.function.destroy_completion_queue(queue.receives)?;
        Ok(())
    }
}

fn say(function: &mut Function, queue: Queue, message: &Told) -> Result<()> {
    post_text(function, queue.pair, serde_json::to_vec(message)?)?;
    successful(function.wait(queue.sends, Wait::Adaptive, PROOF)?)?;
    Ok(())
}

/// Proves `code` to the listener at `host`, and returns the key for the copy. `waiting` hears why
/// it takes longer.
pub fn prove(
    device: &Device,
    host: &str,
    code: &Code,
    mut waiting: impl FnMut(&str),
) -> Result<Key> {
    let listener = Door::Code.listener();
    let node = node_of(device, host, PAIRING, ACQUAINTANCE, listener)?;
    let mut function = open_function(device, SENDER)?;
    let queue = Queue::create(&mut function, DEPTH)?;
    queue.post_receive(&mut function, MESSAGE_BYTES)?;
    let to = Address::new(node, PAIRING, NUMBER);
    let (pairing, theirs) = loop {
        let pairing = Pairing::begin(code, Side::Sender);
        let request = [GREETING, pairing.message()].concat();
        match function.connect(queue.pair, to, &request, ACQUAINTANCE) {
            Ok(theirs) => break (pairing, theirs),
            Err(Error::Rejected { reason, .. }) if reason.as_bytes() == PAUSE => {
                waiting(&format!(
                    "somebody gave {host} a wrong code, so it takes no other for a while"
                ));
            }
            Err(Error::Rejected { reason, .. }) if reason.as_bytes() == TAKEN => bail!(
                "the code is used: {host} takes the copy of another sender with it, and prints a new one if that fails"
            ),
            Err(Error::Rejected { reason, .. }) => bail!(
                "on {host} {reason}, but here {}: use the same version of Bellwire on both sides",
                refusal(GREETING)
            ),
            Err(error) => return Err(asked(error, host, listener)),
        }
        std::thread::sleep(AGAIN);
    };
    let stranger = || {
        anyhow!(
            "what answers on {host} does not know the code: is somebody else there? Nothing was sent"
        )
    };
    let paired = pairing.finish(&theirs).ok_or_else(stranger)?;
    say(&mut function, queue, &Told::Proof(paired.proof()))?;
    let heard = queue.hear(&mut function, MESSAGE_BYTES, Wait::Adaptive, Some(ACQUAINTANCE));
    match heard.with_context(|| format!("{host} did not say whether the code is right"))? {
        Told::Proof(theirs) => paired.confirm(&theirs).ok_or_else(stranger),
        Told::Wrong { count, pause_ms } => bail!(
            "the code is wrong: give the one that `bellwire copy --listen` prints on {host}. It has counted {count} wrong, and takes the next in {} s",
            pause_ms as f64 / 1e3
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each wrong code keeps others waiting twice as long, up to a limit.
    #[test]
    fn wrong_codes_slow_down() {
        let halves = |count| pause_after(count).as_millis() / 500;
        assert_eq!([1, 2, 3, 4, 5, 6, 7].map(halves), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!([8, 40, u64::MAX].map(halves), [64; 3]);
    }
}
