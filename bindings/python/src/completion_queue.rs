//! Completion queues.

use crate::completion::Completion;
use crate::enums;
use crate::errors;
use crate::shared::{self, Shared};
use bellwire::Wait;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyTuple};
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// Where finished descriptors and the events of peers appear.
///
/// `poll` looks, `wait` waits. Iteration waits for each next one, until the function is closed.
/// In a coroutine `await completions` is the next one, and `async for` goes on with it. Then the
/// task sleeps at a descriptor of the event loop: there is no thread, and nothing polls. As a
/// context manager it is destroyed at the end.
#[pyclass(frozen, module = "bellwire")]
pub struct CompletionQueue {
    shared: Arc<Shared>,
    queue: bellwire::CompletionQueue,
}

impl CompletionQueue {
    pub fn new(shared: Arc<Shared>, queue: bellwire::CompletionQueue) -> CompletionQueue {
        CompletionQueue { shared, queue }
    }

    pub fn native(&self) -> bellwire::CompletionQueue {
        self.queue
    }
}

/// How to wait, from the program's `Wait`; `ADAPTIVE` if it gave none.
pub fn how(given: Option<&Bound<'_, PyAny>>) -> PyResult<Wait> {
    const ALL: [Wait; 3] = [Wait::Spin, Wait::Adaptive, Wait::Block];
    static MEMBERS: PyOnceLock<Vec<Py<PyAny>>> = PyOnceLock::new();
    let Some(given) = given else { return Ok(Wait::Adaptive) };
    // Each is one object, and to ask it for its value runs code of Python.
    let mut members = enums::members(given.py(), &MEMBERS, "Wait")?.iter();
    let which = members.position(|member| given.is(member));
    let how = which.and_then(|which| ALL.get(which));
    how.copied().ok_or_else(|| PyTypeError::new_err("how to wait is a member of Wait"))
}

#[pymethods]
impl CompletionQueue {
    /// The oldest completion, or `None`.
    fn poll(&self, py: Python<'_>) -> PyResult<Option<Completion>> {
        self.shared.poll(py, self.queue, None)
    }

    /// The next completion. Waits for it, at most `timeout` seconds; then raises `TimedOut`.
    #[pyo3(signature = (timeout = None, how = None))]
    fn wait(
        &self,
        py: Python<'_>,
        timeout: Option<f64>,
        how: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Completion> {
        let (timeout, how) = (shared::timeout(timeout)?, self::how(how)?);
        self.shared.wait(py, self.queue, None, how, timeout)
    }

    /// The completions that are there now, oldest first, without waiting.
    fn drain<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        while let Some(done) = self.shared.poll(py, self.queue, None)? {
            list.append(Py::new(py, done)?)?;
        }
        Ok(list)
    }

    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Completion>> {
        match self.shared.wait(py, self.queue, None, Wait::Adaptive, shared::FOR_EVER) {
            Ok(done) => Ok(Some(done)),
            Err(error) if is_closed(py, &error)? => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn __await__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let asyncio = slf.py().import("bellwire._asyncio")?;
        asyncio.call_method1("next_completion", (slf,))?.call_method0("__await__")
    }

    fn __aiter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __anext__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let asyncio = slf.py().import("bellwire._asyncio")?;
        asyncio.call_method1("next_or_stop", (slf,))
    }

    /// A descriptor for an event loop. It becomes readable when there may be a completion, after
    /// `begin_sleep` has returned `True`.
    fn fileno(&self) -> i32 {
        self.shared.function.events().as_raw_fd()
    }

    /// Prepares a sleep at `fileno()`. `False`: there is something to do, so poll. After `True`,
    /// `end_sleep` follows.
    fn begin_sleep(&self, py: Python<'_>) -> PyResult<bool> {
        let begun = py.detach(|| {
            self.shared.function.begin_sleep(|function| {
                let found = self.shared.look(function, false, self.queue, None)?;
                let is_ready = found.is_some();
                if let Some(done) = found {
                    self.shared.books().put_back(self.queue, done);
                }
                Ok(is_ready)
            })
        });
        begun.map_err(|error| errors::of(py, &error))
    }

    /// Ends a sleep that `begin_sleep` began, whatever ended it.
    fn end_sleep(&self, py: Python<'_>) -> PyResult<()> {
        match py.detach(|| self.shared.function.end_sleep().map(drop)) {
            // The end of the function ended the sleep. The next call tells of it.
            Ok(()) | Err(bellwire::Error::Closed) => Ok(()),
            Err(error) => Err(errors::of(py, &error)),
        }
    }

    /// The longest time to sleep, in seconds; `None`: for ever. It is short while something waits
    /// for a peer or a deadline.
    fn sleep_limit(&self, py: Python<'_>) -> PyResult<Option<f64>> {
        let limit = self.shared.call(py, |function| Ok(function.sleep_limit()))?;
        Ok(limit.map(|limit| limit.as_secs_f64()))
    }

    /// Destroys the queue, when no queue pair uses it any more. Drops the completions in it.
    fn destroy(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.call(py, |function| function.destroy_completion_queue(self.queue))?;
        let forgotten = self.shared.books().forget(self.queue);
        for done in forgotten {
            let pending = self.shared.books().leave(done.context);
            drop(pending);
        }
        Ok(())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        errors::ended(py, self.destroy(py), "NoSuchCompletionQueue")
    }
}

fn is_closed(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    let closed = py.import("bellwire._errors")?.getattr("Closed")?;
    Ok(error.is_instance(py, &closed))
}
