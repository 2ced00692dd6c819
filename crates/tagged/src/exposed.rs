//! Memory that peers may use: the owner's side.

use crate::atomic::{Change, Form, bits_of};
use crate::control::Control;
use crate::endpoint::Endpoint;
use crate::head::Reader;
use crate::{Done, Outcome, Peer, Refusal, Sink, Span, Token, What};
use bellwire::{Error, MemoryRegion, Rights, Status};

/// A span of the program's memory that peers may use.
pub(crate) struct Exposed {
    span: Span,
    rights: Rights,
    region: MemoryRegion,
}

/// What a peer reports that it has done to our memory.
pub(crate) struct Touch {
    pub(crate) key: u64,
    pub(crate) data: Option<u64>,
    pub(crate) length: usize,
    /// It was read, and not written.
    pub(crate) read: bool,
}

/// Maximum number of exposed spans.
const MOST: usize = 16_384;

impl Endpoint {
    /// Lets peers use `span` by `key`, as `rights` say. Reads need the right to read, and writes
    /// the right to write. Changes need the right to write, those that return previous values both.
    /// The right to atomics is not needed.
    ///
    /// # Errors
    /// [`Refusal::Failed`] if the key is in use, the span is empty, or too many spans are exposed;
    /// as [`bellwire::Function::register_foreign`].
    pub fn expose(&mut self, key: u64, span: Span, rights: Rights) -> Result<(), Refusal> {
        let wrong = |state, hint| Error::WrongState { call: "exposing memory", state, hint };
        if self.exposed.contains_key(&key) {
            return Err(Refusal::Failed(wrong("under a key that is in use", "take another key")));
        }
        if span.is_empty() || self.exposed.len() >= MOST {
            let hint = "expose fewer, longer ones";
            return Err(Refusal::Failed(wrong("that is empty, or one stretch too many", hint)));
        }
        let region = span.register(&mut self.function, rights)?;
        self.exposed.insert(key, Exposed { span, rights, region });
        Ok(())
    }

    /// Withdraws `key`: when this returns, the key is invalid. Unknown keys are ignored.
    pub fn withdraw(&mut self, key: u64) {
        if let Some(exposed) = self.exposed.remove(&key) {
            let released = self.function.deregister_foreign(&exposed.region);
            debug_assert!(released.is_ok(), "{released:?}");
        }
    }

    /// A peer asks for the region of `key`.
    pub(crate) fn resolve(&mut self, peer: Peer, number: u64, key: u64) {
        let (status, bytes) = match self.exposed.get(&key) {
            Some(exposed) => (Status::Success, exposed.region.remote_key().to_bytes().into()),
            None => (Status::WrongKey, Box::default()),
        };
        self.tell(peer, Control::Answer { number, status, bytes });
    }

    /// From now on peers report each write, read and change, which [`Sink::touched`] receives. A
    /// peer's access ends only after the report. Peers that have asked for a key before do not know
    /// that they must report.
    pub fn watch(&mut self) {
        self.watches = true;
    }

    /// A peer reports that it has written to our memory, or read it.
    pub(crate) fn touched(&mut self, peer: Peer, number: u64, touch: Touch, sink: &mut impl Sink) {
        let Touch { key, data, length, read } = touch;
        let needs = if read { Rights::REMOTE_READ } else { Rights::REMOTE_WRITE };
        let may =
            |exposed: &Exposed| exposed.rights.contains(needs) && length <= exposed.span.len();
        // A report counts only from a peer that may access the memory.
        if !self.exposed.get(&key).is_some_and(may) {
            let (status, bytes) = (Status::WrongKey, Box::default());
            return self.tell(peer, Control::Answer { number, status, bytes });
        }
        if self.watches {
            sink.touched(key, read);
        }
        if data.is_some() {
            sink.done(Done {
                token: Token::default(),
                what: What::Written,
                outcome: Outcome::Success,
                peer: Some(peer),
                tag: None,
                data,
                length,
                left: 0,
                at: 0,
            });
        }
        let (status, bytes) = (Status::Success, Box::default());
        self.tell(peer, Control::Answer { number, status, bytes });
    }

    /// A peer requests a change of numbers in our memory. `None`: the request is invalid, and is
    /// dropped.
    pub(crate) fn carry_out(
        &mut self,
        peer: Peer,
        number: u64,
        mut reader: Reader<'_>,
        sink: &mut impl Sink,
    ) -> Option<()> {
        let (key, offset) = (reader.word()?, reader.word()?);
        let form = Form::from_word(reader.word()?)?;
        let (operands, compared) = match form.change {
            Change::Read => (0, 0),
            change if change.compares() => (form.bytes(), form.bytes()),
            _ => (form.bytes(), 0),
        };
        let (operands, rest) = reader.0.split_at_checked(operands)?;
        if rest.len() != compared {
            return None;
        }
        let (status, bytes) = match self.change_exposed(key, offset, form, operands, rest) {
            Ok(bytes) => {
                if self.watches {
                    sink.touched(key, form.fetches || form.change == Change::Read);
                }
                (Status::Success, bytes)
            }
            Err(status) => (status, Box::default()),
        };
        self.tell(peer, Control::Answer { number, status, bytes });
        Some(())
    }

    /// Changes numbers; returns their previous values if requested. After an error nothing has
    /// changed.
    fn change_exposed(
        &self,
        key: u64,
        offset: u64,
        form: Form,
        operands: &[u8],
        compared: &[u8],
    ) -> Result<Box<[u8]>, Status> {
        let Form { change, number, count, fetches } = form;
        let Exposed { span, rights, .. } = self.exposed.get(&key).ok_or(Status::WrongKey)?;
        let reads = fetches || change == Change::Read;
        let needs = match change {
            Change::Read => Rights::REMOTE_READ,
            _ if reads => Rights::REMOTE_READ | Rights::REMOTE_WRITE,
            _ => Rights::REMOTE_WRITE,
        };
        if !rights.contains(needs) {
            return Err(Status::NotPermitted);
        }
        let size = number.size();
        let offset = usize::try_from(offset).map_err(|_| Status::OutOfBounds)?;
        if offset.checked_add(form.bytes()).is_none_or(|end| end > span.len()) {
            return Err(Status::OutOfBounds);
        }
        let mut told = Vec::with_capacity(if reads { form.bytes() } else { 0 });
        for at in 0..count {
            let given = |bytes: &[u8]| if bytes.is_empty() { 0 } else { bits_of(bytes, at, size) };
            let (operand, compared) = (given(operands), given(compared));
            // Bounds were checked, so only the first number can be misaligned, before anything has
            // changed.
            let old = span
                .view()
                .change(offset + at * size, size, |old| change.of(number, old, operand, compared))
                .ok_or(Status::Misaligned)?;
            if reads {
                told.extend_from_slice(&old.to_le_bytes()[..size]);
            }
        }
        Ok(told.into())
    }
}
