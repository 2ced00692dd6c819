//! Why a call is refused.

/// The error of a call. Errors of an accepted work request are in its completion.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// An argument is wrong, or the object's state does not allow the call.
    #[error("{0}")]
    Invalid(&'static str),
    /// A queue or a table is full.
    #[error("{0}")]
    Full(&'static str),
    /// Something still uses the object.
    #[error("{0}")]
    Busy(&'static str),
    /// The device still uses the object, and will soon be done.
    #[error("{0}")]
    UnderWay(&'static str),
    /// Bellwire does not offer this.
    #[error("{0}")]
    Unsupported(&'static str),
    /// The device below refused.
    #[error(transparent)]
    Device(#[from] bellwire::Error),
    /// The system refused.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

/// The result of a call.
pub type Result<T, E = Refusal> = std::result::Result<T, E>;
