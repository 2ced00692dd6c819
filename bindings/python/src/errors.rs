//! Errors as exceptions: one class for each kind, with the library's sentence.

use bellwire::{Error, Status};
use pyo3::prelude::*;
use pyo3::types::PyType;

/// The exception of an error of a call.
pub fn of(py: Python<'_>, error: &Error) -> PyErr {
    let raised = new(py, class_of(error), error.to_string());
    if let Error::System { cause, .. } = error
        && let Some(number) = cause.raw_os_error()
    {
        // Without it the exception still has the sentence.
        let _ = raised.value(py).setattr("errno", number);
    }
    raised
}

/// Whether an exception is of a class of these names.
pub fn is(py: Python<'_>, error: &PyErr, names: &[&str]) -> bool {
    let name = error.get_type(py).name().map(|name| name.to_string());
    name.is_ok_and(|name| names.contains(&name.as_str()))
}

/// What the end of a context manager returns after `ended`. The object may have ended before, alone
/// (`gone`) or with its function.
pub fn ended(py: Python<'_>, ended: PyResult<()>, gone: &str) -> PyResult<()> {
    match ended {
        Err(error) if is(py, &error, &[gone, "Closed", "Forked"]) => Ok(()),
        ended => ended,
    }
}

/// An exception of the class of this name in `bellwire._errors`.
pub fn new(py: Python<'_>, class: &str, sentence: String) -> PyErr {
    let class = py.import("bellwire._errors").and_then(|errors| errors.getattr(class));
    match class.and_then(|class| Ok(class.cast_into::<PyType>()?)) {
        Ok(class) => PyErr::from_type(class, (sentence,)),
        Err(error) => error,
    }
}

/// The class for a status that is not a success.
pub fn class_of_status(status: Status) -> &'static str {
    match status {
        Status::PeerGone => "PeerGone",
        Status::Unreachable => "Unreachable",
        Status::NoSuchQueuePair => "NoSuchQueuePair",
        Status::WrongKey | Status::OutOfBounds | Status::NotPermitted | Status::Misaligned => {
            "NotPermitted"
        }
        Status::Truncated => "Truncated",
        Status::Flushed => "Flushed",
        Status::ProtocolViolation => "ProtocolViolation",
        _ => "DescriptorFailed",
    }
}

fn class_of(error: &Error) -> &'static str {
    match error {
        Error::BadDeviceName { .. } => "BadDeviceName",
        Error::DeviceUnavailable { .. } => "DeviceUnavailable",
        Error::BadFunction { .. } => "BadFunction",
        Error::NameHeld { .. } => "NameHeld",
        Error::NoSuchQueuePair => "NoSuchQueuePair",
        Error::NoSuchCompletionQueue => "NoSuchCompletionQueue",
        Error::NoSuchSharedReceiveQueue => "NoSuchSharedReceiveQueue",
        Error::NoSuchRegion => "NoSuchRegion",
        Error::InUse { .. } => "InUse",
        Error::WrongState { .. } => "WrongState",
        Error::BadDestination(_) => "BadDestination",
        Error::QueueFull { .. } => "QueueFull",
        Error::UnequalSums { .. } => "UnequalSums",
        Error::BadChain(_) => "BadChain",
        Error::TooLong { .. } => "TooLong",
        Error::OutOfRange { .. } => "OutOfRange",
        Error::Exhausted { .. } => "Exhausted",
        Error::NoMemory { .. } => "NoMemory",
        Error::ChannelTaken { .. } => "ChannelTaken",
        Error::Unreachable { .. } => "Unreachable",
        Error::Rejected { .. } => "Rejected",
        Error::TimedOut { .. } => "TimedOut",
        Error::Standstill { .. } => "Standstill",
        Error::Forked => "Forked",
        Error::Closed => "Closed",
        Error::System { .. } => "SystemFailed",
        Error::Version { .. } => "VersionMismatch",
        _ => "Error",
    }
}
