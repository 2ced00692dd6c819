//! One table of errors: what failed, why, and what to do.

use crate::Address;

/// The error of a call.
///
/// Errors of an accepted descriptor are in its completion ([`crate::Status`]). These are errors of
/// the call itself.
// The variant is a whole word. Results overlap completions: compilers would cut a completion in two
// at the end of a narrower variant.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[repr(u64)]
pub enum Error {
    /// The device name has no known form.
    #[error("\"{name}\" names no device: {why}. `bellwire doctor` lists what works here")]
    BadDeviceName {
        /// The given name.
        name: String,
        /// Why it is invalid.
        why: String,
    },
    /// The device exists but cannot be used here.
    #[error("device {device} cannot be used: {why}. Try: {hint}")]
    DeviceUnavailable {
        /// The device's name.
        device: String,
        /// The reason.
        why: String,
        /// The command or change that helps.
        hint: String,
    },
    /// The function number is above the device's functions, or the function is open already.
    #[error("function {function} cannot be opened: {why}")]
    BadFunction {
        /// The function.
        function: u8,
        /// The reason.
        why: &'static str,
    },
    /// Another user's process holds the name of a shared-memory node or function.
    #[error(
        "user {user} holds the name of {what} of job {job}: choose another job name, or end that user's process (`ss -xlpe` as root finds it)"
    )]
    NameHeld {
        /// The node or function.
        what: String,
        /// The job.
        job: String,
        /// The user's numeric id.
        user: u32,
    },
    /// The handle's queue pair was destroyed, or belongs to another function.
    #[error("this queue pair does not exist (any more) in this function")]
    NoSuchQueuePair,
    /// The handle's completion queue was destroyed, or belongs to another function.
    #[error("this completion queue does not exist (any more) in this function")]
    NoSuchCompletionQueue,
    /// The handle's shared receive queue was destroyed, or belongs to another function.
    #[error("this shared receive queue does not exist (any more) in this function")]
    NoSuchSharedReceiveQueue,
    /// The region was deregistered, or belongs to another function.
    #[error("this memory region is not registered with this function")]
    NoSuchRegion,
    /// The object is still in use.
    #[error("{object} is still in use by {user}: destroy or drain that first")]
    InUse {
        /// The object.
        object: &'static str,
        /// What still uses it.
        user: &'static str,
    },
    /// The queue pair's state does not allow the call.
    #[error("{call} is not possible while the queue pair is {state}: {hint}")]
    WrongState {
        /// The call.
        call: &'static str,
        /// Its state.
        state: &'static str,
        /// What to do first.
        hint: &'static str,
    },
    /// An unconnected queue pair needs a destination, a connected one takes none but its peer.
    #[error("{0}")]
    BadDestination(&'static str),
    /// The queue has no room; poll completions first.
    #[error("the {queue} is full ({depth} entries): poll its completions, or create it deeper")]
    QueueFull {
        /// The queue.
        queue: &'static str,
        /// Its depth.
        depth: usize,
    },
    /// Source and destination lists of a chain descriptor have different totals (C-29).
    #[error(
        "a chain's sources hold {sources} bytes but its destinations {destinations}: nothing was moved; make the sums equal"
    )]
    UnequalSums {
        /// Total of the source entries, in bytes.
        sources: u64,
        /// Total of the destination entries, in bytes.
        destinations: u64,
    },
    /// The chain has too many entries, or spans several functions.
    #[error("a chain {0}")]
    BadChain(String),
    /// The message is longer than the printed maximum.
    #[error("{length} bytes are more than the maximum of {maximum} bytes for {what}")]
    TooLong {
        /// The given length, in bytes.
        length: usize,
        /// The maximum, in bytes.
        maximum: usize,
        /// What is too long.
        what: &'static str,
    },
    /// A parameter is outside its range.
    #[error("{parameter} is {value}: it must be {range}")]
    OutOfRange {
        /// Its name.
        parameter: &'static str,
        /// The given value.
        value: u64,
        /// The allowed range.
        range: &'static str,
    },
    /// A limit of the device or function is reached.
    #[error("no more {what}: the limit is {limit}. {hint}")]
    Exhausted {
        /// The exhausted resource.
        what: &'static str,
        /// Its limit.
        limit: u64,
        /// What to do.
        hint: &'static str,
    },
    /// Memory could not be reserved.
    #[error(
        "{bytes} bytes of shared memory for {purpose} could not be reserved: {why}. Lower the sizes or raise the container's memory limit"
    )]
    NoMemory {
        /// Its size.
        bytes: usize,
        /// Its purpose.
        purpose: &'static str,
        /// The kernel's reason.
        why: String,
    },
    /// The channel number already has an owner.
    #[error("channel {channel} is open already on this node: a channel has one owner")]
    ChannelTaken {
        /// Its number.
        channel: u16,
    },
    /// No peer answered.
    #[error("{peer} did not answer within {waited_ms} ms: {tried}")]
    Unreachable {
        /// The peer.
        peer: Address,
        /// The time of the attempt, in milliseconds.
        waited_ms: u64,
        /// The attempts.
        tried: String,
    },
    /// The peer refused the connection.
    #[error("{peer} rejected the connection: {reason}")]
    Rejected {
        /// The peer.
        peer: Address,
        /// Its private data, as text if it is text.
        reason: String,
    },
    /// The deadline passed.
    #[error("nothing happened within {waited_ms} ms")]
    TimedOut {
        /// The time waited, in milliseconds.
        waited_ms: u64,
    },
    /// A simulated device stands still for good: its machine is in a deadlock, or all programs wait
    /// and none sends.
    #[error(
        "the simulated machine stands still for good: {why}. Change its configuration or what is asked of it, and open it anew"
    )]
    Standstill {
        /// What waits for what.
        why: String,
    },
    /// The process was forked and this is the child.
    #[error(
        "this function was opened before fork(): a child must open its own (exec, or open the device after forking)"
    )]
    Forked,
    /// The function was closed, by this thread or another.
    #[error("this function is closed: open it anew")]
    Closed,
    /// The operating system refused a call.
    #[error("{what}: {cause}")]
    System {
        /// The attempted action.
        what: &'static str,
        /// The system's answer. The sentence includes it, so it is no `source`: error chains would
        /// print it twice.
        cause: std::io::Error,
    },
    /// The peer speaks another version.
    #[error(
        "{peer} speaks {theirs}, this program {ours}: use the same Bellwire version on both sides"
    )]
    Version {
        /// The peer.
        peer: String,
        /// Its version and features.
        theirs: String,
        /// Our version and features.
        ours: String,
    },
}

/// Shorthand.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    /// The system's answer appears once: in the sentence.
    #[test]
    fn causes_are_told_once() {
        let cause = std::io::Error::other("no such thing");
        let error = Error::System { what: "look for it", cause };
        assert_eq!(error.to_string(), "look for it: no such thing");
        assert!(error.source().is_none());
    }
}
