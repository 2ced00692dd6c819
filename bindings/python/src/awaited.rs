//! Work on a thread of its own, so that a signal handler can end the call that waits for it.

use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How often a waiting call asks for signals.
const SLICE: Duration = Duration::from_millis(50);

enum News<T> {
    Share(f64),
    Ended(std::thread::Result<T>),
}

/// Does `work` without the interpreter, and waits for its end. `progress` is called with each share
/// of it that is done. If that raises, or a signal handler does, the call ends: the work ends at
/// its next share, and without shares it goes on unheard. It touches no Python object.
pub fn awaited<T: Send + 'static>(
    py: Python<'_>,
    progress: Option<&Py<PyAny>>,
    work: impl FnOnce(&mut dyn FnMut(f64)) -> T + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = channel();
    let worker = move || {
        let mut told = |share| {
            if sender.send(News::Share(share)).is_err() {
                // The call has ended. Work has no other way to end early.
                resume_unwind(Box::new(()));
            }
        };
        let ended = catch_unwind(AssertUnwindSafe(|| work(&mut told)));
        // Nobody may listen any more.
        let _ = sender.send(News::Ended(ended));
    };
    std::thread::Builder::new().name("bellwire-work".to_owned()).spawn(worker)?;
    loop {
        let next;
        (receiver, next) = py.detach(move || {
            let next = receiver.recv_timeout(SLICE);
            (receiver, next)
        });
        match next {
            Ok(News::Share(share)) => {
                progress.map_or(Ok(()), |call| call.call1(py, (share,)).map(drop))?;
            }
            Ok(News::Ended(Ok(result))) => return Ok(result),
            Ok(News::Ended(Err(panic))) => resume_unwind(panic),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
        }
        py.check_signals()?;
    }
}
