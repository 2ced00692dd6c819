//! Queue pairs and shared receive queues.

use crate::address::{self, Address};
use crate::books::{CLAIMED, Pending, SILENT};
use crate::completion::Completion;
use crate::completion_queue::CompletionQueue;
use crate::errors;
use crate::function::Function;
use crate::held::Access;
use crate::post::{Data, Posting};
use crate::region::{self, RemoteAt};
use crate::shared::{self, Shared};
use bellwire::{Atomic, Buffer, ConnectionProgress, Get, Message, Put, Rights, Wait};
use pyo3::exceptions::PyOverflowError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyDict, PyList, PyTuple};
use std::sync::Arc;

/// A queue pair: where messages are sent from, and where they arrive.
///
/// `post_send` and its kin return at once, and a completion queue tells the result. `send` and
/// `receive` wait for their own result. As a context manager it is destroyed at the end; with one
/// of `open_queue_pair` all ends that was opened for it.
#[pyclass(frozen, module = "bellwire")]
pub struct QueuePair {
    shared: Arc<Shared>,
    function: Py<Function>,
    /// Whether its device was opened for it alone.
    has_device: bool,
    pair: bellwire::QueuePair,
    sends: Py<CompletionQueue>,
    receives: Py<CompletionQueue>,
}

/// Bytes of a region that are sent without a completion and without a note of the program's object.
/// A failure then has no `buffer`, as with other short memory.
const SHORT: usize = 64;

/// The options that all posts have.
struct Options<'a, 'py> {
    context: Option<Bound<'py, PyAny>>,
    signaled: bool,
    to: Option<&'a Bound<'py, PyAny>>,
    immediate: Option<u64>,
    claimed: bool,
}

impl QueuePair {
    pub fn new(
        shared: Arc<Shared>,
        function: Py<Function>,
        pair: bellwire::QueuePair,
        sends: Py<CompletionQueue>,
        receives: Py<CompletionQueue>,
    ) -> QueuePair {
        QueuePair { shared, function, has_device: false, pair, sends, receives }
    }

    /// The same, whose device was opened for it alone.
    pub fn with_its_device(self) -> QueuePair {
        QueuePair { has_device: true, ..self }
    }

    pub fn native(&self) -> bellwire::QueuePair {
        self.pair
    }

    fn send_of(&self, data: &Bound<'_, PyAny>, options: Options<'_, '_>) -> PyResult<u64> {
        let py = data.py();
        let Options { context, signaled, to, immediate, claimed } = options;
        let to = to.map(address::of).transpose()?;
        let data_of = Data::of(data, Access::Read)?;
        let is_plain = !signaled && context.is_none();
        if let Data::Part(part) = &data_of
            && is_plain
            && part.len() <= SHORT
        {
            // The library keeps the region for as long as it needs it.
            return self.shared.call(py, |function| {
                let buffer = Message::buffer(part.clone());
                let posted =
                    function.post_send(self.pair, addressed(buffer, to, immediate).unsignaled());
                posted.map(|()| 0).map_err(|refused| refused.error)
            });
        }
        let inline = match &data_of {
            Data::Held(held) if held.len() <= self.shared.limits.eager_bytes => Some(held),
            _ => None,
        };
        if let Some(held) = inline {
            let bytes = held.copied_if(self.shared.is_virtual);
            let bytes = &*bytes;
            if is_plain {
                return self.shared.call(py, |function| {
                    let message = addressed(Message::inline(bytes), to, immediate).unsignaled();
                    let posted = function.post_send(self.pair, message);
                    posted.map(|()| 0).map_err(|refused| refused.error)
                });
            }
            let posting = posting(py, context, vec![data.clone().unbind()], signaled, claimed);
            return self.shared.post(py, posting, |function, _, token| {
                let message = addressed(Message::inline(bytes), to, immediate).context(token);
                function.post_send(self.pair, message).map_err(|refused| refused.error)
            });
        }
        let mut posting = posting(py, context, vec![data.clone().unbind()], signaled, claimed);
        posting.data.push(data_of);
        // The receiver fetches a long message itself.
        posting.rights = Rights::REMOTE_READ;
        self.shared.post(py, posting, |function, buffers, token| {
            let message = addressed(Message::buffer(first(buffers)), to, immediate).context(token);
            function.post_send(self.pair, message).map_err(|refused| refused.error)
        })
    }

    fn receive_of(
        &self,
        buffer: &Bound<'_, PyAny>,
        context: Option<Bound<'_, PyAny>>,
        claimed: bool,
    ) -> PyResult<u64> {
        let posting = receive_posting(buffer, context, claimed)?;
        self.shared.post(buffer.py(), posting, |function, buffers, token| {
            let posted = function.post_receive(self.pair, first(buffers), token);
            posted.map_err(|refused| refused.error)
        })
    }

    /// The completion of this descriptor. `receiver`: our number, if it is a receive.
    fn wait_for(
        &self,
        py: Python<'_>,
        queue: &Py<CompletionQueue>,
        token: u64,
        timeout: Option<f64>,
        receiver: Option<u32>,
    ) -> PyResult<Completion> {
        let (queue, timeout) = (queue.get().native(), shared::timeout(timeout)?);
        let done = self.shared.wait(py, queue, Some(token), Wait::Adaptive, timeout);
        if done.is_err() {
            // Nobody waits for it any more: its completion goes the way of all others.
            self.shared.books().abandon(queue, token, receiver);
        }
        done
    }

    /// The receive whose call gave up, if there is one: the next message arrives in its buffer.
    fn left_behind(&self) -> Option<u64> {
        let queue = self.receives.get().native();
        // A child may have inherited the books locked.
        self.shared
            .function
            .is_same_process()
            .then(|| self.shared.books())?
            .reclaim(queue, self.pair.number)
    }
}

fn addressed<'a>(
    message: Message<'a>,
    to: Option<bellwire::Address>,
    immediate: Option<u64>,
) -> Message<'a> {
    let message = match to {
        Some(to) => message.to(to),
        None => message,
    };
    match immediate {
        Some(value) => message.immediate(value),
        None => message,
    }
}

fn telling<'a>(put: Put<'a>, event: Option<u32>, immediate: Option<u64>) -> Put<'a> {
    match event {
        Some(queue_pair) => put.event(queue_pair, immediate),
        None => put,
    }
}

fn first(buffers: Vec<Buffer>) -> Buffer {
    buffers.into_iter().next().unwrap_or_else(|| Vec::new().into())
}

fn posting(
    py: Python<'_>,
    context: Option<Bound<'_, PyAny>>,
    objects: Vec<Py<PyAny>>,
    signaled: bool,
    claimed: bool,
) -> Posting {
    let context = context.map_or_else(|| py.None(), Bound::unbind);
    let flags = if signaled { 0 } else { SILENT } | if claimed { CLAIMED } else { 0 };
    Posting { context, objects, data: Vec::new(), rights: Rights::empty(), flags }
}

/// A receive into a buffer, or into a new `bytearray` of so many bytes.
fn receive_posting(
    buffer: &Bound<'_, PyAny>,
    context: Option<Bound<'_, PyAny>>,
    claimed: bool,
) -> PyResult<Posting> {
    let py = buffer.py();
    let buffer = target_of(buffer)?;
    let data = Data::of(&buffer, Access::Write)?;
    let mut posting = posting(py, context, vec![buffer.unbind()], true, claimed);
    posting.data.push(data);
    Ok(posting)
}

/// The memory for a message: what the program gave, or a new `bytearray`.
fn target_of<'py>(buffer: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = buffer.py();
    let Some(length) = length_of(buffer)? else { return Ok(buffer.clone()) };
    let new = PyByteArray::new_with(py, length, |_| Ok(()));
    new.map(Bound::into_any).map_err(|_| {
        let why = format!("there is no memory for a bytearray of {length} bytes");
        errors::new(py, "NoMemory", why)
    })
}

/// The number of bytes, if it is a number. Arrays and tensors of one integer look like one, too,
/// but are memory.
fn length_of(buffer: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
    // SAFETY: the object is alive.
    let may_be = unsafe { pyo3::ffi::PyIndex_Check(buffer.as_ptr()) != 0 };
    if !may_be || buffer.hasattr("__dlpack__")? {
        return Ok(None);
    }
    match buffer.extract::<isize>() {
        Ok(length) if length >= 0 => Ok(Some(length.unsigned_abs())),
        Err(error) if !error.is_instance_of::<PyOverflowError>(buffer.py()) => Err(error),
        _ => {
            let why = format!("cannot receive {buffer} bytes: it must be 0 to {}", isize::MAX);
            Err(errors::new(buffer.py(), "OutOfRange", why))
        }
    }
}

/// One object, or a list of them.
fn local_parts(given: &Bound<'_, PyAny>, access: Access) -> PyResult<(Vec<Py<PyAny>>, Vec<Data>)> {
    let objects: Vec<Bound<'_, PyAny>> = match (given.cast::<PyList>(), given.cast::<PyTuple>()) {
        (Ok(list), _) => list.iter().collect(),
        (_, Ok(tuple)) => tuple.iter().collect(),
        _ => vec![given.clone()],
    };
    let data: PyResult<Vec<Data>> = objects.iter().map(|object| Data::of(object, access)).collect();
    Ok((objects.into_iter().map(Bound::unbind).collect(), data?))
}

#[pymethods]
impl QueuePair {
    /// The number that peers send to.
    #[getter]
    fn number(&self) -> u32 {
        self.pair.number
    }

    /// The address that peers send to.
    #[getter]
    fn address(&self) -> Address {
        let bellwire::FunctionAddress { node, function } = self.shared.address;
        Address(bellwire::Address::new(node, function, self.pair.number))
    }

    /// The function.
    #[getter]
    fn function(&self, py: Python<'_>) -> Py<Function> {
        self.function.clone_ref(py)
    }

    /// The queue in which sends, puts, gets and atomics complete.
    #[getter]
    fn completions(&self, py: Python<'_>) -> Py<CompletionQueue> {
        self.sends.clone_ref(py)
    }

    /// The queue in which receives and remote events complete.
    #[getter]
    fn receive_completions(&self, py: Python<'_>) -> Py<CompletionQueue> {
        self.receives.clone_ref(py)
    }

    /// Posts a message: bytes, an array, any contiguous buffer, a tensor in the processor's memory,
    /// or a region. Up to `Limits.eager_bytes` of a buffer are copied before this returns. Longer
    /// memory is not copied; it stays as it is until the completion.
    ///
    /// `to` is required on an unconnected queue pair. `context` is any object, which the completion
    /// returns. Without `signaled` there is a completion only if it fails.
    #[pyo3(signature = (data, to = None, *, immediate = None, context = None, signaled = true))]
    fn post_send(
        &self,
        data: &Bound<'_, PyAny>,
        to: Option<&Bound<'_, PyAny>>,
        immediate: Option<u64>,
        context: Option<Bound<'_, PyAny>>,
        signaled: bool,
    ) -> PyResult<()> {
        let options = Options { context, signaled, to, immediate, claimed: false };
        self.send_of(data, options).map(drop)
    }

    /// Posts a buffer for one message: a writable buffer, a region, or a number of bytes, for
    /// which a new `bytearray` is made. The completion returns it, filled.
    #[pyo3(signature = (buffer, *, context = None))]
    fn post_receive(
        &self,
        buffer: &Bound<'_, PyAny>,
        context: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        self.receive_of(buffer, context, false).map(drop)
    }

    /// Posts a one-sided write: local buffers, one or a list, to parts of a peer's regions, one or
    /// a list. With `event` a completion `REMOTE_PUT` appears at queue pair `event` of the target
    /// when all bytes are there, with the value `immediate`.
    #[pyo3(signature = (
        sources, destinations, *, event = None, immediate = None, context = None, signaled = true
    ))]
    fn post_put(
        &self,
        sources: &Bound<'_, PyAny>,
        destinations: &Bound<'_, PyAny>,
        event: Option<u32>,
        immediate: Option<u64>,
        context: Option<Bound<'_, PyAny>>,
        signaled: bool,
    ) -> PyResult<()> {
        let py = sources.py();
        if immediate.is_some() && event.is_none() {
            let why = "an immediate value needs an event: name the queue pair that gets it";
            return Err(pyo3::exceptions::PyValueError::new_err(why));
        }
        let to = region::remote_parts(destinations)?;
        let (objects, data) = local_parts(sources, Access::Read)?;
        let mut posting = posting(py, context, objects, signaled, false);
        if let [Data::Held(held)] = &data[..]
            && held.len() <= self.shared.limits.eager_bytes
        {
            let bytes = held.copied_if(self.shared.is_virtual);
            let bytes = &*bytes;
            let posted = self.shared.post(py, posting, |function, _, token| {
                let put = telling(Put::inline(bytes, to), event, immediate).context(token);
                function.post_put(self.pair, put).map_err(|refused| refused.error)
            });
            return posted.map(drop);
        }
        posting.data = data;
        let posted = self.shared.post(py, posting, |function, buffers, token| {
            let put = telling(Put::new(buffers, to), event, immediate).context(token);
            function.post_put(self.pair, put).map_err(|refused| refused.error)
        });
        posted.map(drop)
    }

    /// Posts a one-sided read: parts of a peer's regions, one or a list, to local buffers, one or
    /// a list.
    #[pyo3(signature = (sources, destinations, *, context = None, signaled = true))]
    fn post_get(
        &self,
        sources: &Bound<'_, PyAny>,
        destinations: &Bound<'_, PyAny>,
        context: Option<Bound<'_, PyAny>>,
        signaled: bool,
    ) -> PyResult<()> {
        let from = region::remote_parts(sources)?;
        let (objects, data) = local_parts(destinations, Access::Write)?;
        let mut posting = posting(sources.py(), context, objects, signaled, false);
        posting.data = data;
        let posted = self.shared.post(sources.py(), posting, |function, buffers, token| {
            let get = Get::new(from, buffers).context(token);
            function.post_get(self.pair, get).map_err(|refused| refused.error)
        });
        posted.map(drop)
    }

    /// Posts an addition to a peer's 8-byte word. The completion's `value` is the word before.
    #[pyo3(signature = (at, operand, *, context = None, signaled = true))]
    fn post_fetch_add(
        &self,
        py: Python<'_>,
        at: &RemoteAt,
        operand: u64,
        context: Option<Bound<'_, PyAny>>,
        signaled: bool,
    ) -> PyResult<()> {
        self.atomic(py, Atomic::fetch_add(at.0, operand), context, signaled)
    }

    /// Posts an exchange of a peer's 8-byte word by `new`, if it equals `expected`. The
    /// completion's `value` is the word before.
    #[pyo3(signature = (at, expected, new, *, context = None, signaled = true))]
    fn post_compare_swap(
        &self,
        py: Python<'_>,
        at: &RemoteAt,
        expected: u64,
        new: u64,
        context: Option<Bound<'_, PyAny>>,
        signaled: bool,
    ) -> PyResult<()> {
        self.atomic(py, Atomic::compare_swap(at.0, expected, new), context, signaled)
    }

    /// Sends a message and waits until it has arrived, or raises the reason why not. The arguments
    /// are those of `post_send`; `timeout` is in seconds. A send that times out stays under way: it
    /// may still arrive, its memory stays lent, and its completion comes to `completions`.
    #[pyo3(signature = (data, to = None, *, immediate = None, timeout = None))]
    fn send(
        &self,
        data: &Bound<'_, PyAny>,
        to: Option<&Bound<'_, PyAny>>,
        immediate: Option<u64>,
        timeout: Option<f64>,
    ) -> PyResult<Py<Completion>> {
        shared::timeout(timeout)?;
        let options = Options { context: None, signaled: true, to, immediate, claimed: true };
        let token = self.send_of(data, options)?;
        self.wait_for(data.py(), &self.sends, token, timeout, None)?.checked(data.py())
    }

    /// Receives one message into `buffer` and waits for it. `buffer` is as in `post_receive`. Its
    /// result has the bytes: `receive(64).view()`.
    ///
    /// The buffer of a call that timed out stays posted, so the next message arrives there. The
    /// next `receive` waits for that message, and copies it if `buffer` is another one. So nothing
    /// is lost. Without a next `receive` its completion comes to `receive_completions`.
    #[pyo3(signature = (buffer, *, timeout = None))]
    fn receive(&self, buffer: &Bound<'_, PyAny>, timeout: Option<f64>) -> PyResult<Py<Completion>> {
        let py = buffer.py();
        shared::timeout(timeout)?;
        let ours = Some(self.pair.number);
        let Some(left) = self.left_behind() else {
            let token = self.receive_of(buffer, None, true)?;
            return self.wait_for(py, &self.receives, token, timeout, ours)?.checked(py);
        };
        let target = match target_of(buffer).and_then(|to| Data::of(&to, Access::Write).map(|_| to))
        {
            Ok(target) => target,
            Err(error) => {
                self.shared.books().abandon(self.receives.get().native(), left, ours);
                return Err(error);
            }
        };
        let done = self.wait_for(py, &self.receives, left, timeout, ours)?;
        done.copied_to(&target)?.checked(py)
    }

    /// Asks a listener for a connection and waits for the answer. Returns the peer's private data.
    #[pyo3(signature = (to, private_data = None, *, timeout = 10.0))]
    fn connect<'py>(
        &self,
        py: Python<'py>,
        to: &Bound<'py, PyAny>,
        private_data: Option<&[u8]>,
        timeout: f64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let (to, timeout) = (address::of(to)?, shared::timeout(Some(timeout))?);
        let private_data = private_data.unwrap_or_default();
        self.shared
            .call(py, |function| function.start_connect(self.pair, to, private_data, timeout))?;
        // The connection's own deadline ends this wait.
        let answer = self.shared.wait_for(
            py,
            Wait::Adaptive,
            shared::FOR_EVER,
            |function, _| match function.poll_connection(self.pair)? {
                ConnectionProgress::Waiting => Ok(None),
                ConnectionProgress::Connected(private_data) => Ok(Some(private_data)),
            },
        )?;
        Ok(PyBytes::new(py, &answer))
    }

    /// Ends a connection: posted descriptors complete as `FLUSHED` here and as `PEER_GONE` at the
    /// peer.
    fn disconnect(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.call(py, |function| function.disconnect(self.pair))
    }

    /// The connected peer, if there is one.
    #[getter]
    fn peer(&self, py: Python<'_>) -> PyResult<Option<Address>> {
        match self.shared.call(py, |function| function.query(self.pair))?.connection {
            bellwire::ConnectionState::Connected { peer } => Ok(Some(Address(peer))),
            _ => Ok(None),
        }
    }

    /// The counters of the queue pair, by name, and what is posted and waits now.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let state = self.shared.call(py, |function| function.query(self.pair))?;
        let rows = PyDict::new(py);
        for (name, count) in state.counters.rows() {
            rows.set_item(name, count)?;
        }
        rows.set_item("posted_sends", state.posted_sends)?;
        rows.set_item("posted_receives", state.posted_receives)?;
        rows.set_item("backlog_messages", state.backlog_messages)?;
        Ok(rows)
    }

    /// Destroys the queue pair. Each unfinished descriptor completes as `FLUSHED`.
    fn destroy(&self, py: Python<'_>) -> PyResult<()> {
        self.shared.call(py, |function| function.destroy_queue_pair(self.pair))
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        if self.has_device {
            self.function.get().device(py).get().close(py);
            return Ok(());
        }
        // It may have ended before, alone or with its function.
        errors::ended(py, self.destroy(py), "NoSuchQueuePair")
    }

    fn __repr__(&self) -> String {
        format!("<QueuePair {}>", self.address().0)
    }
}

impl QueuePair {
    fn atomic(
        &self,
        py: Python<'_>,
        atomic: Atomic,
        context: Option<Bound<'_, PyAny>>,
        signaled: bool,
    ) -> PyResult<()> {
        let posting = posting(py, context, Vec::new(), signaled, false);
        let posted = self.shared.post(py, posting, |function, _, token| {
            let posted = function.post_atomic(self.pair, atomic.context(token));
            posted.map_err(|refused| refused.error)
        });
        posted.map(drop)
    }
}

/// A receive queue that several queue pairs share. As a context manager it is destroyed at the end.
#[pyclass(frozen, module = "bellwire")]
pub struct SharedReceiveQueue {
    pub shared: Arc<Shared>,
    pub queue: bellwire::SharedReceiveQueue,
}

#[pymethods]
impl SharedReceiveQueue {
    /// Posts a buffer for one message to any of the queue pairs: as `QueuePair.post_receive`.
    #[pyo3(signature = (buffer, *, context = None))]
    fn post_receive(
        &self,
        buffer: &Bound<'_, PyAny>,
        context: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let posting = receive_posting(buffer, context, false)?;
        let posted = self.shared.post(buffer.py(), posting, |function, buffers, token| {
            let posted = function.post_shared_receive(self.queue, first(buffers), token);
            posted.map_err(|refused| refused.error)
        });
        posted.map(drop)
    }

    /// Destroys the queue, when no queue pair uses it any more. Returns the posted buffers, each
    /// with its context.
    fn destroy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let pending: Vec<Pending> = self.shared.call(py, |function| {
            let receives = function.destroy_shared_receive_queue(self.queue)?;
            let tokens: Vec<u64> = receives.into_iter().map(|(_, token)| token).collect();
            let mut books = self.shared.books();
            let ended = tokens.into_iter().filter_map(|token| {
                books.end(function, token);
                books.leave(token)
            });
            Ok(ended.collect())
        })?;
        let objects = pending.into_iter().filter_map(|Pending { context, mut buffers, .. }| {
            buffers.pop().map(|buffer| (buffer, context))
        });
        PyList::new(py, objects.collect::<Vec<_>>())
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        errors::ended(py, self.destroy(py).map(drop), "NoSuchSharedReceiveQueue")
    }
}
