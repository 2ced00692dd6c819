//! One table of errors: what, why, and what to do.

use crate::Address;

/// What a call can return instead of doing what it was asked.
///
/// Errors of a descriptor that was accepted are in its completion ([`crate::Status`]); these are errors of the call itself.
// The variant is a whole word: results lie over completions, and where the word ends that tells an error's variant, compilers cut a
// completion in two to move it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[repr(u64)]
pub enum Error {
    /// The device name has no known form.
    #[error(
        "\"{name}\" names no device: {why}. Known forms: shm:JOB, eth:INTERFACE, udp:ADDRESS, auto:eth:INTERFACE, auto:udp:ADDRESS, model:chpp (for instance shm:job, eth:eth0, auto:udp:10.0.0.1). `bellwire doctor` lists what works here"
    )]
    BadDeviceName {
        /// What was given.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// The device exists but cannot be used here.
    #[error("device {device} cannot be used: {why}. Try: {hint}")]
    DeviceUnavailable {
        /// The device's name.
        device: String,
        /// Why not.
        why: String,
        /// The command or change that helps.
        hint: String,
    },
    /// The function number is above what the device was configured with, or is open already.
    #[error("function {function} cannot be opened: {why}")]
    BadFunction {
        /// Which one.
        function: u8,
        /// Why not.
        why: &'static str,
    },
    /// Another user's process took the name of a shared-memory node or function first.
    #[error(
        "user {user} holds the name of {what} of job {job}: choose another job name, or end that user's process (`ss -xlpe` as root finds it)"
    )]
    NameHeld {
        /// Of what: a node or function.
        what: String,
        /// Which job.
        job: String,
        /// The user's number.
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
    /// The object is still used by others.
    #[error("{object} is still in use by {user}: destroy or drain that first")]
    InUse {
        /// What should go.
        object: &'static str,
        /// What still needs it.
        user: &'static str,
    },
    /// The queue pair's state does not allow the call.
    #[error("{call} is not possible while the queue pair is {state}: {hint}")]
    WrongState {
        /// The call.
        call: &'static str,
        /// The state it is in.
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
        /// Which queue.
        queue: &'static str,
        /// Its depth.
        depth: usize,
    },
    /// Source and destination lists of a chain descriptor have different sums (C-29).
    #[error(
        "a chain's sources hold {sources} bytes but its destinations {destinations}: nothing was moved; make the sums equal"
    )]
    UnequalSums {
        /// Sum of the source entries, in bytes.
        sources: u64,
        /// Sum of the destination entries, in bytes.
        destinations: u64,
    },
    /// The chain has too many entries, or spans several functions.
    #[error("a chain {0}")]
    BadChain(String),
    /// The message is longer than the printed maximum.
    #[error("{length} bytes are more than the maximum of {maximum} bytes for {what}")]
    TooLong {
        /// What was asked.
        length: usize,
        /// What is possible.
        maximum: usize,
        /// Of what.
        what: &'static str,
    },
    /// A parameter is outside its range.
    #[error("{parameter} is {value}: it must be {range}")]
    OutOfRange {
        /// Its name.
        parameter: &'static str,
        /// What was given.
        value: u64,
        /// What is allowed.
        range: &'static str,
    },
    /// A limit of the device or function is reached.
    #[error("no more {what}: the limit is {limit}. {hint}")]
    Exhausted {
        /// Of what.
        what: &'static str,
        /// How many there can be.
        limit: u64,
        /// What to do.
        hint: &'static str,
    },
    /// Memory could not be reserved.
    #[error(
        "{bytes} bytes of shared memory for {purpose} could not be reserved: {why}. Lower the sizes or raise the container's memory limit"
    )]
    NoMemory {
        /// How much.
        bytes: usize,
        /// What for.
        purpose: &'static str,
        /// The kernel's reason.
        why: String,
    },
    /// The channel number has an owner already.
    #[error("channel {channel} is open already on this node: a channel has one owner")]
    ChannelTaken {
        /// Its number.
        channel: u16,
    },
    /// Nobody answered.
    #[error("{peer} did not answer within {waited_ms} ms: {tried}")]
    Unreachable {
        /// Who.
        peer: Address,
        /// How long it was tried.
        waited_ms: u64,
        /// What was tried.
        tried: String,
    },
    /// The peer refused the connection.
    #[error("{peer} rejected the connection: {reason}")]
    Rejected {
        /// Who.
        peer: Address,
        /// Its private data, as text if it is text.
        reason: String,
    },
    /// The deadline passed.
    #[error("nothing happened within {waited_ms} ms")]
    TimedOut {
        /// How long.
        waited_ms: u64,
    },
    /// Nothing will ever happen again on a simulated device: its machine is in a deadlock, or all programs wait and none sends.
    #[error(
        "the simulated machine stands still for good: {why}. Change its configuration or what is asked of it, and open it anew"
    )]
    Standstill {
        /// Who waits, and for whom.
        why: String,
    },
    /// The process was forked and this is the child.
    #[error(
        "this function was opened before fork(): a child must open its own (exec, or open the device after forking)"
    )]
    Forked,
    /// The operating system refused something.
    #[error("{what}: {cause}")]
    System {
        /// What was attempted.
        what: &'static str,
        /// Its answer, which the sentence tells; so it is no `source`, or chains of errors would tell it twice.
        cause: std::io::Error,
    },
    /// The peer speaks another version.
    #[error(
        "{peer} speaks {theirs}, this program {ours}: use the same Bellwire version on both sides"
    )]
    Version {
        /// Who.
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

    /// What the system said is told once: in the sentence.
    #[test]
    fn causes_are_told_once() {
        let cause = std::io::Error::other("no such thing");
        let error = Error::System { what: "look for it", cause };
        assert_eq!(error.to_string(), "look for it: no such thing");
        assert!(error.source().is_none());
    }
}
