//! Remote memory access: the side of the memory's owner.

use crate::atomic::{AtomicOp, AtomicRequest, bits_of};
use crate::completion::{
    CompletionKind, MemoryAccess, Outcome, Peer, PostError, Sink, TaggedCompletion, Token,
};
use crate::control::Control;
use crate::head::Reader;
use crate::memory::Span;
use crate::transport::Transport;
use bellwire::{Error, MemoryRegion, Rights, Status};
use std::collections::HashMap;

/// A span of the program's memory that peers may use.
struct Exposed {
    span: Span,
    rights: Rights,
    region: MemoryRegion,
}

/// A peer's report of what it has done to our memory.
pub(crate) struct AccessReport {
    pub(crate) key: u64,
    pub(crate) data: Option<u64>,
    pub(crate) length: usize,
    /// It was read, and not written.
    pub(crate) read: bool,
}

/// Maximum number of exposed spans.
const MAX_EXPOSED: usize = 16_384;

/// The memory of an endpoint that peers may use.
pub(crate) struct ExposedMemory {
    spans: HashMap<u64, Exposed>,
    /// Peers report each access to it.
    pub(crate) monitored: bool,
}

impl ExposedMemory {
    pub(crate) fn new() -> ExposedMemory {
        ExposedMemory { spans: HashMap::new(), monitored: false }
    }

    pub(crate) fn expose(
        &mut self,
        transport: &mut Transport,
        key: u64,
        span: Span,
        rights: Rights,
    ) -> Result<(), PostError> {
        let wrong = |state, hint| Error::WrongState { call: "exposing memory", state, hint };
        if self.spans.contains_key(&key) {
            return Err(PostError::Failed(wrong("under a key that is in use", "take another key")));
        }
        if span.is_empty() || self.spans.len() >= MAX_EXPOSED {
            let hint = "expose fewer, longer ones";
            return Err(PostError::Failed(wrong("that is empty, or one span too many", hint)));
        }
        let region = transport.register([span], rights)?.remove(0);
        self.spans.insert(key, Exposed { span, rights, region });
        Ok(())
    }

    pub(crate) fn withdraw(&mut self, transport: &mut Transport, key: u64) {
        transport.release(self.spans.remove(&key).map(|exposed| exposed.region));
    }

    /// Withdraws all keys.
    pub(crate) fn close(&mut self, transport: &mut Transport) {
        transport.release(self.spans.drain().map(|(_, exposed)| exposed.region));
    }

    /// A peer asks for the region of `key`.
    pub(crate) fn resolve(&self, transport: &mut Transport, peer: Peer, access: u64, key: u64) {
        let region = self.spans.get(&key).map(|exposed| exposed.region.remote_key());
        let result = region.map(|key| key.to_bytes().into()).ok_or(Status::WrongKey);
        self.reply(transport, peer, access, result);
    }

    fn reply(
        &self,
        transport: &mut Transport,
        peer: Peer,
        access: u64,
        result: Result<Box<[u8]>, Status>,
    ) {
        let (status, bytes) = match result {
            Ok(bytes) => (Status::Success, bytes),
            Err(status) => (status, Box::default()),
        };
        let monitored = self.monitored;
        transport.send_control(peer, Control::Reply { access, status, bytes, monitored });
    }

    /// A peer reports that it has written to our memory, or read it.
    pub(crate) fn accessed(
        &self,
        transport: &mut Transport,
        peer: Peer,
        access: u64,
        report: AccessReport,
        sink: &mut impl Sink,
    ) {
        let AccessReport { key, data, length, read } = report;
        let needs = if read { Rights::REMOTE_READ } else { Rights::REMOTE_WRITE };
        let may =
            |exposed: &Exposed| exposed.rights.contains(needs) && length <= exposed.span.len();
        // A report counts only from a peer that may access the memory.
        if !self.spans.get(&key).is_some_and(may) {
            return self.reply(transport, peer, access, Err(Status::WrongKey));
        }
        if self.monitored {
            let access = if read { MemoryAccess::Read } else { MemoryAccess::Written };
            sink.memory_accessed(key, access);
        }
        if data.is_some() {
            let (kind, outcome) = (CompletionKind::Written, Outcome::Success);
            let written = TaggedCompletion::new(Token::default(), kind, outcome);
            sink.completed(TaggedCompletion { peer: Some(peer), data, length, ..written });
        }
        self.reply(transport, peer, access, Ok(Box::default()));
    }

    /// A peer requests an atomic operation on our memory. `None`: the request is invalid, and is
    /// dropped.
    pub(crate) fn execute_atomic(
        &self,
        transport: &mut Transport,
        peer: Peer,
        access: u64,
        mut reader: Reader<'_>,
        sink: &mut impl Sink,
    ) -> Option<()> {
        let (key, offset) = (reader.word()?, reader.word()?);
        let request = AtomicRequest::from_word(reader.word()?)?;
        let (operands, compared) = match request.op {
            AtomicOp::Read => (0, 0),
            op if op.compares() => (request.bytes(), request.bytes()),
            _ => (request.bytes(), 0),
        };
        let (operands, rest) = reader.0.split_at_checked(operands)?;
        if rest.len() != compared {
            return None;
        }
        let result = self.apply(key, offset, request, operands, rest);
        if self.monitored && result.is_ok() {
            let access = match (request.op, request.reads()) {
                (AtomicOp::Read, _) => MemoryAccess::Read,
                (_, true) => MemoryAccess::Exchanged,
                (_, false) => MemoryAccess::Written,
            };
            sink.memory_accessed(key, access);
        }
        self.reply(transport, peer, access, result);
        Some(())
    }

    /// Changes numbers; returns their previous values if requested. After an error nothing has
    /// changed.
    fn apply(
        &self,
        key: u64,
        offset: u64,
        request: AtomicRequest,
        operands: &[u8],
        compared: &[u8],
    ) -> Result<Box<[u8]>, Status> {
        let AtomicRequest { op, datatype, count, .. } = request;
        let Exposed { span, rights, .. } = self.spans.get(&key).ok_or(Status::WrongKey)?;
        let mut needs = Rights::empty();
        needs.set(Rights::REMOTE_READ, request.reads());
        needs.set(Rights::REMOTE_WRITE, op != AtomicOp::Read);
        if !rights.contains(needs) {
            return Err(Status::NotPermitted);
        }
        let size = datatype.size();
        let offset = usize::try_from(offset).map_err(|_| Status::OutOfBounds)?;
        if offset.checked_add(request.bytes()).is_none_or(|end| end > span.len()) {
            return Err(Status::OutOfBounds);
        }
        let mut previous = Vec::with_capacity(if request.reads() { request.bytes() } else { 0 });
        for at in 0..count {
            let given = |bytes: &[u8]| if bytes.is_empty() { 0 } else { bits_of(bytes, at, size) };
            let (operand, compared) = (given(operands), given(compared));
            // Bounds were checked, so only the first number can be misaligned, before anything has
            // changed.
            let old = span
                .view()
                .change(offset + at * size, size, |old| op.apply(datatype, old, operand, compared))
                .ok_or(Status::Misaligned)?;
            if request.reads() {
                previous.extend_from_slice(&old.to_le_bytes()[..size]);
            }
        }
        Ok(previous.into())
    }
}
