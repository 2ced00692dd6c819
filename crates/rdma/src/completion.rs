//! Work completions: what a program polls.

/// The result of a work request, with the values of the specification (`IBV_WC_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
#[allow(missing_docs)] // The names are the specification's.
pub enum WorkStatus {
    Success = 0,
    LocalLength = 1,
    LocalQueuePairOperation = 2,
    LocalProtection = 4,
    Flushed = 5,
    WindowBind = 6,
    LocalAccess = 8,
    RemoteInvalidRequest = 9,
    RemoteAccess = 10,
    RemoteOperation = 11,
    RetryExceeded = 12,
    NotReadyRetryExceeded = 13,
}

/// The operation of a completion, with the values of the specification.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
#[allow(missing_docs)] // The names are the specification's.
pub enum WorkOpcode {
    Send = 0,
    Write = 1,
    Read = 2,
    CompareSwap = 3,
    FetchAdd = 4,
    BindWindow = 5,
    LocalInvalidate = 6,
    Receive = 128,
    ReceiveWriteImmediate = 129,
}

/// Bits of [`WorkCompletion::flags`].
pub mod work_flag {
    /// The first 40 bytes of the buffer are a global route header.
    pub const GRH: u32 = 1;
    /// `word` is an immediate value.
    pub const IMMEDIATE: u32 = 2;
    /// `word` is the key that the peer has invalidated.
    pub const INVALIDATED: u32 = 8;
}

/// A finished work request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkCompletion {
    /// The number that the program gave the request.
    pub id: u64,
    /// The result.
    pub status: WorkStatus,
    /// The operation. After an error only `id`, `status`, `queue_pair` and `cause` count.
    pub opcode: WorkOpcode,
    /// What led to an error: docs/verbs.md lists the numbers. 0 after success.
    pub cause: Cause,
    /// Bytes received, read or exchanged.
    pub length: u32,
    /// An immediate value in the sender's byte order, or a key, by `flags`.
    pub word: u32,
    /// The queue pair of the request.
    pub queue_pair: u32,
    /// The sender's queue pair.
    pub source: u32,
    /// Bits of [`work_flag`].
    pub flags: u32,
}

impl WorkCompletion {
    #[inline(always)]
    pub(crate) fn new(id: u64, status: WorkStatus, opcode: WorkOpcode, queue_pair: u32) -> Self {
        let (cause, length, word, source, flags) = (Cause::None, 0, 0, 0, 0);
        WorkCompletion { id, status, opcode, cause, length, word, queue_pair, source, flags }
    }
}

/// What led to a status: the number that programs see as `vendor_err`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Cause {
    /// Nothing is wrong.
    None = 0,
    /// The peer's process is gone.
    PeerGone = 1,
    /// Nobody answered at the peer's address.
    Unreachable = 2,
    /// The peer's queue pair does not exist, or does not receive yet.
    NoQueuePair = 3,
    /// The peer knows no such key.
    WrongKey = 4,
    /// Address and length do not lie inside the memory of the key.
    OutOfBounds = 5,
    /// The access flags of the region, the window or the queue pair do not allow this.
    NotPermitted = 6,
    /// The address of an atomic is not a multiple of 8.
    Misaligned = 7,
    /// The message is longer than the receive.
    TooLong = 8,
    /// The queue pair left the state in which it works.
    Flushed = 9,
    /// The peer has no receive posted.
    NoReceive = 10,
    /// A local key is wrong, or its region lies in another protection domain.
    LocalKey = 11,
    /// A part of a list does not lie in its region.
    LocalBounds = 12,
    /// The peer could not use its own receive.
    PeerFailed = 13,
    /// The packet sequence numbers of the two sides differ.
    Sequence = 14,
    /// The peer broke Bellwire's protocol.
    Protocol = 15,
    /// The program's memory could not be used by the device.
    Device = 16,
    /// The peer is of another build, whose messages are not understood.
    OtherBuild = 17,
}
