//! Knows the truth: which packets were queued, by which function, for which. Each packet is
//! computed from its stream and its number, so the oracle stores no bytes and still compares every
//! one.
//!
//! Requests may be questions about a few words of memory at the other end: put, get, or add. The
//! oracle performs them when they are queued, the program at the other end when it takes them. The
//! answers must agree: nothing was done twice, left out or done in another order.

use bellwire_protocol::reliable::{Body, Channel, PeerId};

use std::collections::VecDeque;

use crate::chance::scatter;
use crate::race::{Race, Shares};

/// The flag in the first word of a packet that demands an answer.
pub const QUESTION: u64 = 1 << 31;
/// The flag in the first word of a packet that answers: its third word is the value.
pub const ANSWER: u64 = 1 << 30;

/// Memory at the other end of a link, private to that link.
pub type Memory = [u64; 4];

/// Performs a question and returns the previous value.
#[inline]
pub fn perform(memory: &mut Memory, words: [u64; 3]) -> u64 {
    let place = &mut memory[words[0] as usize & 3];
    let before = *place;
    match words[0] >> 2 & 3 {
        0 => {}
        1 => *place = words[2],
        _ => *place = before.wrapping_add(words[2]),
    }
    before
}

/// All packets that one life of a function queues on one channel of one link.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The queuer, by index.
    pub from: usize,
    /// The taker, by index.
    pub to: usize,
    /// The channel.
    pub channel: Channel,
    /// Packets that the protocol accepted.
    pub queued: u32,
    /// Packets that were taken.
    pub taken: u32,
    /// Packets that the queuer was told are delivered.
    pub delivered: u32,
    /// The taker's link has ended, and every packet that came by it was taken.
    is_over: bool,
    /// The life and the link of the taker, known from the first packet on.
    taker: Option<(u32, PeerId)>,
    /// The memory at the other end after all queued questions.
    memory: Memory,
    /// The expected values of outstanding answers.
    answers: VecDeque<u64>,
}

impl Stream {
    fn check_delivered(&self, index: u32) -> Result<(), String> {
        if self.is_over && self.delivered > self.taken {
            return Err(format!("what is called delivered of stream {index} was not: {self:?}"));
        }
        Ok(())
    }
}

/// The streams of one link of one life of a function.
#[derive(Clone, Copy, Debug)]
struct Source {
    peer: PeerId,
    streams: [Option<u32>; 2],
}

/// Everything that was queued and taken in a world.
#[derive(Debug)]
pub struct Oracle {
    key: u64,
    longest_bytes: u32,
    streams: Vec<Stream>,
    /// By taker: its links that packets came from.
    sources: Vec<Vec<Source>>,
    /// By taker and queuer: the youngest stream with a packet taken in the taker's present life.
    youngest: Vec<Vec<u32>>,
    /// By function: packets taken in its present life.
    taken: Vec<u64>,
    /// The bytes that each function brings to the first, in a race.
    pub shares: Option<Shares>,
}

impl Oracle {
    /// For `functions` functions that queue packets of up to `longest_bytes`, and may race.
    pub fn new(seed: u64, functions: usize, longest_bytes: u32, race: Option<Race>) -> Self {
        Oracle {
            key: scatter(seed ^ 0x0a_c1e5),
            longest_bytes,
            streams: Vec::new(),
            sources: vec![Vec::new(); functions],
            youngest: vec![vec![0; functions]; functions],
            taken: vec![0; functions],
            shares: race.map(|race| Shares::new(race, functions)),
        }
    }

    /// Begins a stream.
    pub fn open(&mut self, from: usize, to: usize, channel: Channel) -> u32 {
        self.streams.push(Stream {
            from,
            to,
            channel,
            queued: 0,
            taken: 0,
            delivered: 0,
            is_over: false,
            taker: None,
            memory: Memory::default(),
            answers: VecDeque::new(),
        });
        self.streams.len() as u32 - 1
    }

    /// A stream.
    pub fn stream(&self, stream: u32) -> &Stream {
        &self.streams[stream as usize]
    }

    /// All streams.
    pub fn streams(&self) -> &[Stream] {
        &self.streams
    }

    /// Packets that the present life of a function took.
    pub fn taken(&self, function: usize) -> u64 {
        self.taken[function]
    }

    /// Words and payload of the next packet of a stream.
    #[inline]
    pub fn next(&self, stream: u32) -> ([u64; 3], Payload) {
        let (words, length, key) = self.content(stream, self.streams[stream as usize].queued);
        (words, Payload { key, from: 0, length })
    }

    /// The protocol accepted the next packet of a stream, with these words.
    #[inline]
    pub fn queued(&mut self, stream: u32, words: [u64; 3]) {
        let stream = &mut self.streams[stream as usize];
        stream.queued += 1;
        if words[0] & QUESTION != 0 && stream.channel == Channel::Request {
            stream.answers.push_back(perform(&mut stream.memory, words));
        }
    }

    /// Outstanding answers to the questions of a stream.
    pub fn unanswered(&self, stream: u32) -> usize {
        self.streams[stream as usize].answers.len()
    }

    /// Checks that a packet offered to life `life` of function `taker`, which will take it, is the
    /// expected one. `asked` is the taker's own stream of requests on the same link. The error says
    /// what is wrong.
    #[inline]
    pub fn take(
        &mut self,
        (taker, life): (usize, u32),
        (peer, from): (PeerId, usize),
        channel: Channel,
        asked: u32,
        words: [u64; 3],
        payload: &[u8],
    ) -> Result<(), String> {
        let index = words[1] as u32;
        let number = (words[1] >> 32) as u32;
        let Some(stream) = self.streams.get(index as usize) else {
            return Err(format!("a packet of stream {index}, which does not exist"));
        };
        if (stream.to, stream.from, stream.channel) != (taker, from, channel) {
            return Err(format!(
                "packet {number} of stream {index} came to {taker} from {from} as {channel:?}: {stream:?}"
            ));
        }
        if stream.taken != number || number >= stream.queued {
            return Err(format!("packet {number} came instead of the next of {stream:?}"));
        }
        let (mut expected, length, key) = self.content(index, number);
        expected[0] |= (length as u64) << 32;
        if words[0] & ANSWER != 0 && channel == Channel::Response {
            let Some(answer) = self.streams[asked as usize].answers.pop_front() else {
                return Err(format!("packet {number} of stream {index} answers no question"));
            };
            expected[0] |= ANSWER;
            expected[2] = answer;
        }
        if expected != words || length != payload.len() {
            return Err(format!(
                "packet {number} of stream {index} has words {words:x?} and {} bytes, not {expected:x?} and {length}",
                payload.len()
            ));
        }
        if let Some(at) = (Payload { key, from: 0, length }).difference(payload) {
            return Err(format!("packet {number} of stream {index} is altered near {at}"));
        }
        if number == 0 {
            self.bind(index, (taker, life), (peer, from), channel)?;
        }
        let stream = &mut self.streams[index as usize];
        if stream.taker != Some((life, peer)) {
            return Err(format!("packet {number} came by {peer:?} to life {life} of {stream:?}"));
        }
        if index < self.youngest[taker][from] {
            return Err(format!(
                "packet {number} of stream {index} from {from} came to {taker} after one of stream {}",
                self.youngest[taker][from]
            ));
        }
        stream.taken += 1;
        self.taken[taker] += 1;
        Ok(())
    }

    /// The queuer is told that the first `count` packets of a stream are delivered. The error says
    /// what is wrong.
    pub fn delivered(&mut self, index: u32, count: u64) -> Result<(), String> {
        let stream = &mut self.streams[index as usize];
        if count > stream.queued as u64 || count < stream.delivered as u64 {
            return Err(format!(
                "{count} packets of stream {index} are called delivered: {stream:?}"
            ));
        }
        stream.delivered = count as u32;
        stream.check_delivered(index)
    }

    /// A function is told the end of a link, after all packets of the link: no more packets may
    /// count as delivered. The error says what is wrong.
    pub fn ended(&mut self, function: usize, peer: PeerId) -> Result<(), String> {
        let source = self.sources[function].iter().find(|source| source.peer == peer);
        let Some(index) = source.and_then(|source| source.streams[Channel::Request as usize])
        else {
            return Ok(());
        };
        let stream = &mut self.streams[index as usize];
        stream.is_over = true;
        stream.check_delivered(index)
    }

    /// Checks at the end of a world that delivered packets were taken. `keeps` selects the
    /// functions that neither died nor closed a link. The error says what is wrong.
    pub fn finish(&mut self, keeps: impl Fn(usize) -> bool) -> Result<(), String> {
        for (index, stream) in self.streams.iter_mut().enumerate() {
            stream.is_over |= keeps(stream.to);
            stream.check_delivered(index as u32)?;
        }
        Ok(())
    }

    /// A link of a function is down and closed: nothing may come by it any more.
    pub fn closed(&mut self, function: usize, peer: PeerId) {
        self.sources[function].retain(|source| source.peer != peer);
    }

    /// A function was restarted and has forgotten what it took before.
    pub fn restarted(&mut self, function: usize) {
        self.sources[function].clear();
        self.taken[function] = 0;
    }

    /// The first packet of a stream was taken. A link carries one stream per channel, and streams
    /// of one queuer come in the order of their creation. So no packet of an old life follows one
    /// of a new life.
    fn bind(
        &mut self,
        index: u32,
        (taker, life): (usize, u32),
        (peer, from): (PeerId, usize),
        channel: Channel,
    ) -> Result<(), String> {
        let sources = &mut self.sources[taker];
        let place = match sources.iter().position(|source| source.peer == peer) {
            Some(place) => place,
            None => {
                sources.push(Source { peer, streams: [None; 2] });
                sources.len() - 1
            }
        };
        let bound = &mut sources[place].streams[channel as usize];
        if let Some(bound) = bound {
            return Err(format!("streams {bound} and {index} came by the same link of {taker}"));
        }
        *bound = Some(index);
        self.streams[index as usize].taker = Some((life, peer));
        // Both streams of a link are begun together, the even one first.
        let youngest = &mut self.youngest[taker][from];
        *youngest = (*youngest).max(index & !1);
        Ok(())
    }

    /// Words, length and key of the payload of a packet.
    #[inline]
    fn content(&self, stream: u32, number: u32) -> ([u64; 3], usize, u64) {
        let key = scatter(self.key ^ (number as u64) << 32 ^ stream as u64);
        let most = match key & 7 {
            0..4 => 16,
            4..6 => 64,
            _ => self.longest_bytes,
        };
        let most = most.min(self.longest_bytes);
        let length = (((key >> 8 & 0xff_ffff) * (most as u64 + 1)) >> 24) as usize;
        let first = if key >> 32 & 1 == 0 { key >> 33 & 0xf } else { key >> 33 & 0xff_ffff };
        let question = if key >> 3 & 3 == 0 { QUESTION } else { 0 };
        let argument = scatter(key) >> (key >> 58);
        let argument = if key >> 5 & 3 == 0 { 0 } else { argument };
        ([first | question, stream as u64 | (number as u64) << 32, argument], length, key)
    }
}

/// The bytes of a packet, computed when they are read.
#[derive(Clone, Copy, Debug)]
pub struct Payload {
    key: u64,
    from: usize,
    length: usize,
}

impl Payload {
    /// The payload without its first `count` bytes; there must be at least as many.
    pub fn behind(self, count: usize) -> Payload {
        Payload { from: self.from + count, length: self.length - count, ..self }
    }

    /// The approximate offset of the first difference from `bytes`, which has the same length.
    #[inline]
    fn difference(&self, bytes: &[u8]) -> Option<usize> {
        let mut sum = self.key;
        let (words, rest) = bytes.as_chunks::<WORD_BYTES>();
        // Compare all words before branching, so that the loop vectorises.
        let mut wrong = 0;
        for word in words {
            wrong |= u64::from_le_bytes(*word) ^ mix(sum);
            sum = sum.wrapping_add(STEP);
        }
        if wrong == 0 {
            return (*rest != mix(sum).to_le_bytes()[..rest.len()])
                .then_some(bytes.len() - rest.len());
        }
        let is_wrong = |(index, word): (usize, &[u8; WORD_BYTES])| {
            let sum = self.key.wrapping_add(STEP.wrapping_mul(index as u64));
            (*word != mix(sum).to_le_bytes()).then_some(index * WORD_BYTES)
        };
        words.iter().enumerate().find_map(is_wrong)
    }
}

impl Body for Payload {
    #[inline]
    fn len(&self) -> usize {
        self.length
    }

    #[inline]
    fn read(&self, offset: usize, into: &mut [u8]) {
        let start = self.from + offset;
        let mut sum = self.key.wrapping_add(STEP.wrapping_mul((start / WORD_BYTES) as u64));
        let mut into = into;
        let skipped = start % WORD_BYTES;
        if skipped > 0 {
            let (end, rest) = into.split_at_mut((WORD_BYTES - skipped).min(into.len()));
            end.copy_from_slice(&mix(sum).to_le_bytes()[skipped..skipped + end.len()]);
            sum = sum.wrapping_add(STEP);
            into = rest;
        }
        let (words, rest) = into.as_chunks_mut::<WORD_BYTES>();
        for word in words {
            *word = mix(sum).to_le_bytes();
            sum = sum.wrapping_add(STEP);
        }
        rest.copy_from_slice(&mix(sum).to_le_bytes()[..rest.len()]);
    }
}

/// A payload is a sequence of words computed from sums: the key, plus one step per word.
const WORD_BYTES: usize = 8;
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

#[inline]
fn mix(sum: u64) -> u64 {
    sum ^ sum >> 29
}
