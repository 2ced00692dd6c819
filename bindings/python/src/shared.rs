//! A function that Python objects share, and the rules by which they use it.
//!
//! No thread waits for the function's lock while it holds the interpreter's lock, and none needs
//! the interpreter while it holds the function's. So the two locks cannot wait for each other.

use crate::books::{Books, Dead, Pending};
use crate::completion::Completion;
use crate::errors;
use bellwire::{
    CompletionQueue, Driving, Error, Function, FunctionAddress, Limits, SharedFunction, Wait,
};
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// For ever.
pub const FOR_EVER: Duration = Duration::MAX;

/// A function and what is known of its descriptors.
pub struct Shared {
    pub function: SharedFunction,
    books: Mutex<Books>,
    pub address: FunctionAddress,
    pub limits: Limits,
    pub is_virtual: bool,
}

/// What stays in the thread that made it, although the interpreter's lock is given up meanwhile.
struct Here<T>(T);

// SAFETY: `Python::detach` runs its closure in the calling thread. What is inside touches no Python
// object, which its users promise.
unsafe impl<T> Send for Here<T> {}

impl<R, T: FnOnce(&mut Function) -> R> Here<T> {
    fn run(self, function: &mut Function) -> R {
        (self.0)(function)
    }
}

/// Open functions, to be closed when the interpreter ends.
static OPEN: Mutex<Vec<Weak<Shared>>> = Mutex::new(Vec::new());

fn unpoisoned<T>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub fn new(function: Function, is_virtual: bool) -> bellwire::Result<Arc<Shared>> {
        let (address, limits) = (function.address(), function.limits());
        let function = SharedFunction::new(function, is_virtual)?;
        let books = Mutex::new(Books::default());
        Ok(Arc::new(Shared { function, books, address, limits, is_virtual }))
    }

    /// Notes a new function, to be closed when the interpreter ends. The interpreter's lock is
    /// held, so no fork copies the list while it is locked.
    pub fn note(self: &Arc<Self>, _: Python<'_>) {
        let mut open = unpoisoned(&OPEN);
        open.retain(|other| other.strong_count() > 0);
        open.push(Arc::downgrade(self));
    }

    /// The books. They are never held while Python code runs.
    pub fn books(&self) -> MutexGuard<'_, Books> {
        unpoisoned(&self.books)
    }

    /// Calls the function. `call` touches no Python object, nor drops one.
    pub fn call<R>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Function) -> bellwire::Result<R>,
    ) -> PyResult<R> {
        // First: a child may inherit the books locked, for ever.
        if !self.function.is_same_process() {
            return Err(errors::of(py, &Error::Forked));
        }
        if self.books().has_rubbish() {
            self.sweep(py)?;
        }
        self.call_as_is(py, call)
    }

    fn call_as_is<R>(
        &self,
        py: Python<'_>,
        call: impl FnOnce(&mut Function) -> bellwire::Result<R>,
    ) -> PyResult<R> {
        let result = if self.is_virtual {
            // A simulated device makes its threads take turns, so others must be able to run.
            let call = Here(call);
            py.detach(|| Here(self.function.lock().and_then(|mut driving| call.run(&mut driving))))
                .0
        } else {
            call(&mut *self.lock(py)?)
        };
        result.map_err(|error| errors::of(py, &error))
    }

    /// The function, on devices of real time, whose calls do not wait.
    fn lock(&self, py: Python<'_>) -> PyResult<Driving<'_>> {
        let first = self.function.try_lock().map_err(|error| errors::of(py, &error))?;
        Ok(match first {
            Some(driving) => driving,
            None => {
                let _want = self.function.want();
                loop {
                    let free = py.detach(|| self.function.wait_until_free());
                    free.map_err(|error| errors::of(py, &error))?;
                    let next = self.function.try_lock().map_err(|error| errors::of(py, &error))?;
                    if let Some(driving) = next {
                        break driving;
                    }
                }
            }
        })
    }

    /// Gives back what descriptors without a completion held, and ends regions whose handles the
    /// program dropped.
    #[cold]
    fn sweep(&self, py: Python<'_>) -> PyResult<()> {
        let (silent, dead) = {
            let mut books = self.books();
            (books.sweep(), std::mem::take(&mut books.dead))
        };
        // Objects may run code of the program as they end, which may want the function. So they end
        // after the call.
        let (used, ended) = self.call_as_is(py, |function| {
            let is_used = |(region, _): &Dead| {
                matches!(function.deregister_foreign(region), Err(Error::InUse { .. }))
            };
            Ok(dead.into_iter().partition::<Vec<Dead>, _>(is_used))
        })?;
        self.books().dead.extend(used);
        drop((silent, ended));
        Ok(())
    }

    /// One look for a completion of a queue, or for the one that a call waits for.
    pub fn look(
        &self,
        function: &mut Function,
        progress: bool,
        queue: CompletionQueue,
        mine: Option<u64>,
    ) -> bellwire::Result<Option<bellwire::Completion>> {
        if let Some(found) = self.books().take(queue, mine) {
            return Ok(Some(found));
        }
        loop {
            let next =
                if progress { function.poll(queue)? } else { function.next_completion(queue)? };
            let Some(completion) = next else { return Ok(None) };
            if let Some(found) = self.books().file(function, queue, completion, mine) {
                return Ok(Some(found));
            }
        }
    }

    /// The oldest completion of a queue, if there is one.
    pub fn poll(
        self: &Arc<Self>,
        py: Python<'_>,
        queue: CompletionQueue,
        mine: Option<u64>,
    ) -> PyResult<Option<Completion>> {
        let found = self.call(py, |function| self.look(function, true, queue, mine))?;
        Ok(found.map(|done| self.finish(py, done)))
    }

    /// The next completion of a queue, or the one that a call waits for.
    pub fn wait(
        self: &Arc<Self>,
        py: Python<'_>,
        queue: CompletionQueue,
        mine: Option<u64>,
        how: Wait,
        timeout: Duration,
    ) -> PyResult<Completion> {
        // Most often a short look is enough, and the interpreter's lock can stay.
        if let Some(found) = self.poll(py, queue, mine)? {
            return Ok(found);
        }
        let done = self.wait_for(py, how, timeout, |function, progress| {
            self.look(function, progress, queue, mine)
        })?;
        Ok(self.finish(py, done))
    }

    /// Waits until `look` finds something, without the interpreter's lock. A signal handler that
    /// raises ends it.
    pub fn wait_for<R: Send>(
        &self,
        py: Python<'_>,
        how: Wait,
        timeout: Duration,
        look: impl FnMut(&mut Function, bool) -> bellwire::Result<Option<R>> + Send,
    ) -> PyResult<R> {
        let mut raised = None;
        let stop = || {
            // `None`: the interpreter ends, so nobody will see the result.
            let told = Python::try_attach(|py| py.check_signals());
            match told {
                Some(Ok(())) => false,
                Some(Err(error)) => {
                    raised = Some(error);
                    true
                }
                None => true,
            }
        };
        let found = py.detach(|| self.function.wait_for(how, timeout, stop, look));
        match (found, raised) {
            (_, Some(error)) => Err(error),
            (Ok(Some(found)), None) => Ok(found),
            (Ok(None), None) => Err(errors::of(py, &Error::Closed)),
            (Err(error), None) => Err(errors::of(py, &error)),
        }
    }

    /// A completion with the program's objects.
    fn finish(self: &Arc<Self>, py: Python<'_>, done: bellwire::Completion) -> Completion {
        let pending = self.books().leave(done.context);
        match pending {
            Some(Pending { context, buffers, .. }) => Completion::new(&done, context, buffers),
            None => Completion::new(&done, py.None(), Vec::new()),
        }
    }

    /// Closes the function: peers see its end, waiting calls end with an exception.
    pub fn close(&self, py: Python<'_>) {
        // In a child of the process nothing ends, and the parent's memory is not the child's.
        let function = py.detach(|| self.function.close());
        if function.is_none() {
            return;
        }
        py.detach(|| drop(function));
        let objects = self.books().clear();
        drop(objects);
    }
}

/// Closes all functions that are open, when the interpreter ends. Threads that wait leave the
/// library while there still is an interpreter to return to.
#[pyfunction]
pub fn _close_all(py: Python<'_>) {
    let open = std::mem::take(&mut *unpoisoned(&OPEN));
    for shared in open.into_iter().filter_map(|shared| shared.upgrade()) {
        shared.close(py);
    }
}

/// A time in seconds; `None` is for ever.
pub fn timeout(seconds: Option<f64>) -> PyResult<Duration> {
    let Some(seconds) = seconds else { return Ok(FOR_EVER) };
    if seconds.is_nan() {
        return Err(pyo3::exceptions::PyValueError::new_err("a timeout is a number of seconds"));
    }
    Ok(Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(FOR_EVER))
}
