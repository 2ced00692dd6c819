//! Devices and functions.

use crate::awaited::awaited;
use crate::completion_queue::CompletionQueue;
use crate::connection::Listener;
use crate::errors;
use crate::held::{Access, Held};
use crate::queue_pair::{QueuePair, SharedReceiveQueue};
use crate::region::{self, MemoryRegion};
use crate::shared::{self, Shared};
use bellwire::{DeviceOptions, FunctionOptions, QueuePairOptions, Rights};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A device that this process has opened: one node among those of the same name.
///
/// `Device("shm:job", node=1)` is the same as `Device("shm:job?node=1")`. Any setting of a device
/// can be given both ways. As a context manager it is closed at the end, with its functions.
#[pyclass(frozen, module = "bellwire")]
pub struct Device {
    name: String,
    node: u32,
    /// `None` once it is closed.
    opened: Mutex<Option<Opened>>,
}

struct Opened {
    device: bellwire::Device,
    functions: Vec<Weak<Shared>>,
}

impl Device {
    /// The lock is never held while Python code or a call of the library runs.
    fn opened(&self) -> MutexGuard<'_, Option<Opened>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn native(&self, py: Python<'_>) -> PyResult<bellwire::Device> {
        let device = self.opened().as_ref().map(|opened| opened.device.clone());
        device.ok_or_else(|| closed(py))
    }
}

fn closed(py: Python<'_>) -> PyErr {
    errors::new(py, "Closed", "this device is closed: open it anew".to_owned())
}

#[pymethods]
impl Device {
    /// Opens the device `name`, for instance `shm:job`.
    #[new]
    #[pyo3(signature = (name, **settings))]
    fn new(py: Python<'_>, name: &str, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Device> {
        let mut options = DeviceOptions::default();
        for (key, value) in settings.into_iter().flatten() {
            options = options.setting(&key.extract::<String>()?, value.str()?.to_string_lossy());
        }
        let opened = py.detach(|| bellwire::Device::open_with(name, &options));
        let device = opened.map_err(|error| errors::of(py, &error))?;
        let (name, node) = (device.name().to_owned(), device.node());
        let opened = Mutex::new(Some(Opened { device, functions: Vec::new() }));
        Ok(Device { name, node, opened })
    }

    /// The name that it was opened by, without settings.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Our node number.
    #[getter]
    fn node(&self) -> u32 {
        self.node
    }

    /// One line: what carries the messages, and how.
    fn describe(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.native(py)?.describe())
    }

    /// The virtual time in picoseconds, on devices that simulate time; `None` on others.
    #[getter]
    fn virtual_time_ps(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        Ok(self.native(py)?.virtual_time().map(|time| time.now_ps))
    }

    /// A hash of all events so far, on devices that simulate time: equal hashes mean identical
    /// runs.
    #[getter]
    fn trace_hash(&self, py: Python<'_>) -> PyResult<Option<u64>> {
        Ok(self.native(py)?.virtual_time().map(|time| time.trace_hash))
    }

    /// The number of the node at `host`, a host name or an address, on `udp` and `eth`. Its
    /// function must be open there.
    #[pyo3(signature = (host, function = 0, *, timeout = 10.0))]
    fn lookup(&self, py: Python<'_>, host: &str, function: u8, timeout: f64) -> PyResult<u32> {
        let (device, timeout) = (self.native(py)?, shared::timeout(Some(timeout))?);
        let host = host.to_owned();
        let found = awaited(py, None, move |_| device.lookup(&host, function, timeout))?;
        found.map_err(|error| errors::of(py, &error))
    }

    /// Opens a function. It can be open only once at a time.
    #[pyo3(signature = (number = 0, *, weight = None, outstanding = None, backlog_bytes = None))]
    fn open_function(
        slf: &Bound<'_, Self>,
        number: u8,
        weight: Option<u8>,
        outstanding: Option<usize>,
        backlog_bytes: Option<usize>,
    ) -> PyResult<Function> {
        let py = slf.py();
        let device = slf.get().native(py)?;
        let mut options = FunctionOptions::default();
        if let Some(weight) = weight {
            options = options.weight(weight);
        }
        if let Some(operations) = outstanding {
            options = options.outstanding(operations);
        }
        if let Some(bytes) = backlog_bytes {
            options = options.backlog_bytes(bytes);
        }
        let is_virtual = device.virtual_time().is_some();
        let shared = py.detach(|| {
            let function = device.open_function_with(number, &options)?;
            Shared::new(function, is_virtual)
        });
        let shared = shared.map_err(|error| errors::of(py, &error))?;
        let is_open = slf.get().opened().as_mut().map(|opened| {
            opened.functions.retain(|other| other.strong_count() > 0);
            opened.functions.push(Arc::downgrade(&shared));
        });
        // Another thread may have closed the device meanwhile.
        is_open.ok_or_else(|| closed(py))?;
        shared.note(py);
        Ok(Function { shared, device: slf.clone().unbind() })
    }

    /// Closes the device with its functions, as `Function.close` does. Then its node is free.
    pub fn close(&self, py: Python<'_>) {
        let Some(Opened { device, functions }) = self.opened().take() else { return };
        for function in functions.iter().filter_map(Weak::upgrade) {
            function.close(py);
        }
        py.detach(|| drop(device));
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        let end = if self.opened().is_some() { "" } else { ", closed" };
        format!("<Device {}, node {}{end}>", self.name, self.node)
    }
}

/// The kinds of devices, each with the forms of its names.
#[pyfunction]
pub fn kinds(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let kinds = PyDict::new(py);
    for (name, forms) in bellwire::Device::kinds() {
        kinds.set_item(name, PyTuple::new(py, forms)?)?;
    }
    Ok(kinds)
}

/// Opens a device, its function 0, and there a completion queue and a queue pair.
///
/// `name` and `settings` are those of `Device`; `depth` is the number of descriptors that can be
/// under way. All of it is closed at the end of a `with` block, by `pair.function.device.close()`,
/// or with the last reference to the queue pair.
///
/// Raises: as `Device` and `Device.open_function`.
#[pyfunction]
#[pyo3(signature = (name, *, depth = 256, **settings))]
pub fn open_queue_pair(
    py: Python<'_>,
    name: &str,
    depth: usize,
    settings: Option<&Bound<'_, PyDict>>,
) -> PyResult<QueuePair> {
    let device = Bound::new(py, Device::new(py, name, settings)?)?;
    let function = Bound::new(py, Device::open_function(&device, 0, None, None, None)?)?;
    let queue = function.get().create_completion_queue(py, depth.saturating_mul(2))?;
    let completions = Bound::new(py, queue)?;
    let pair = Function::create_queue_pair(&function, &completions, None, depth, depth, None)?;
    Ok(pair.with_its_device())
}

/// One function of a device: its queue pairs, completion queues and memory.
///
/// Threads may share it. As a context manager it is closed at the end.
#[pyclass(frozen, module = "bellwire")]
pub struct Function {
    shared: Arc<Shared>,
    device: Py<Device>,
}

impl Function {
    fn options(
        completions: &Bound<'_, CompletionQueue>,
        receives: Option<&Bound<'_, CompletionQueue>>,
        (send_depth, receive_depth): (usize, usize),
        shared: Option<&Bound<'_, SharedReceiveQueue>>,
    ) -> QueuePairOptions {
        let mut options = QueuePairOptions::new(completions.get().native())
            .send_depth(send_depth)
            .receive_depth(receive_depth);
        if let Some(receives) = receives {
            options = options.receive_completions(receives.get().native());
        }
        if let Some(shared) = shared {
            options = options.shared_receive(shared.get().queue);
        }
        options
    }

    /// What `make` makes, whose results go to these queues.
    fn pair(
        slf: &Bound<'_, Self>,
        completions: &Bound<'_, CompletionQueue>,
        receives: Option<&Bound<'_, CompletionQueue>>,
        make: impl FnOnce(&mut bellwire::Function) -> bellwire::Result<bellwire::QueuePair>,
    ) -> PyResult<QueuePair> {
        let shared = slf.get().shared.clone();
        let pair = shared.call(completions.py(), make)?;
        let receives = receives.unwrap_or(completions).clone().unbind();
        let (function, sends) = (slf.clone().unbind(), completions.clone().unbind());
        Ok(QueuePair::new(shared, function, pair, sends, receives))
    }
}

#[pymethods]
impl Function {
    /// The device.
    #[getter]
    pub fn device(&self, py: Python<'_>) -> Py<Device> {
        self.device.clone_ref(py)
    }

    /// Our node number.
    #[getter]
    fn node(&self) -> u32 {
        self.shared.address.node
    }

    /// The function's number.
    #[getter]
    fn number(&self) -> u8 {
        self.shared.address.function
    }

    /// Every limit of the function, by name.
    #[getter]
    fn limits<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let limits = self.shared.limits;
        let rows = PyDict::new(py);
        for (name, value) in [
            ("eager_bytes", limits.eager_bytes),
            ("message_bytes", limits.message_bytes),
            ("packet_bytes", limits.packet_bytes),
            ("queue_pairs", limits.queue_pairs),
            ("completion_queues", limits.completion_queues),
            ("shared_receive_queues", limits.shared_receive_queues),
            ("listeners", limits.listeners),
            ("regions", limits.regions),
            ("links", limits.links),
            ("chain_entries", limits.chain_entries),
            ("private_data_bytes", limits.private_data_bytes),
            ("queue_depth", limits.queue_depth),
            ("outstanding", limits.outstanding),
        ] {
            rows.set_item(name, value)?;
        }
        Ok(rows)
    }

    /// The counters of the function and its device since it was opened, by name.
    fn counters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counters = self.shared.call(py, |function| Ok(function.counters()))?;
        let rows = PyDict::new(py);
        for (name, count) in counters.function.rows().chain(counters.device) {
            rows.set_item(name, count)?;
        }
        Ok(rows)
    }

    /// A completion queue for `depth` completions, 1 to 1,048,576. It never overflows: each post
    /// reserves an entry.
    #[pyo3(signature = (depth = 64))]
    fn create_completion_queue(&self, py: Python<'_>, depth: usize) -> PyResult<CompletionQueue> {
        let queue = self.shared.call(py, |function| function.create_completion_queue(depth))?;
        Ok(CompletionQueue::new(self.shared.clone(), queue))
    }

    /// A receive queue that several queue pairs share, for `depth` receives, 1 to 65,536.
    #[pyo3(signature = (depth = 256))]
    fn create_shared_receive_queue(
        &self,
        py: Python<'_>,
        depth: usize,
    ) -> PyResult<SharedReceiveQueue> {
        let queue = self.shared.call(py, |function| function.create_shared_receive_queue(depth))?;
        Ok(SharedReceiveQueue { shared: self.shared.clone(), queue })
    }

    /// A queue pair. Its number, which peers send to, is the lowest that was never used, counted
    /// from 1. Receives complete in `receive_completions`, if it is given.
    #[pyo3(signature = (
        completions, *, receive_completions = None, send_depth = 256, receive_depth = 256,
        shared_receive = None
    ))]
    fn create_queue_pair(
        slf: &Bound<'_, Self>,
        completions: &Bound<'_, CompletionQueue>,
        receive_completions: Option<&Bound<'_, CompletionQueue>>,
        send_depth: usize,
        receive_depth: usize,
        shared_receive: Option<&Bound<'_, SharedReceiveQueue>>,
    ) -> PyResult<QueuePair> {
        let depths = (send_depth, receive_depth);
        let options = Function::options(completions, receive_completions, depths, shared_receive);
        Function::pair(slf, completions, receive_completions, |function| {
            function.create_queue_pair(&options)
        })
    }

    /// A member of channel `number`. It receives from members of the same channel on any node, and
    /// sends to them with `Address.channel`.
    #[pyo3(signature = (
        number, completions, *, receive_completions = None, send_depth = 256, receive_depth = 256,
        shared_receive = None
    ))]
    #[allow(clippy::too_many_arguments)]
    fn open_channel(
        slf: &Bound<'_, Self>,
        number: u16,
        completions: &Bound<'_, CompletionQueue>,
        receive_completions: Option<&Bound<'_, CompletionQueue>>,
        send_depth: usize,
        receive_depth: usize,
        shared_receive: Option<&Bound<'_, SharedReceiveQueue>>,
    ) -> PyResult<QueuePair> {
        let depths = (send_depth, receive_depth);
        let options = Function::options(completions, receive_completions, depths, shared_receive);
        Function::pair(slf, completions, receive_completions, |function| {
            function.open_channel(number, &options)
        })
    }

    /// A region of `length` zeroed bytes, which peers with its key access without an intermediate
    /// copy.
    #[pyo3(signature = (length, rights = None))]
    fn allocate_region(
        &self,
        py: Python<'_>,
        length: usize,
        rights: Option<u8>,
    ) -> PyResult<MemoryRegion> {
        let rights = region::rights(rights)?;
        let region = self.shared.call(py, |function| function.allocate_region(length, rights))?;
        Ok(MemoryRegion::new(self.shared.clone(), region, None, None, true))
    }

    /// Registers memory that the program brings: an array, a `bytearray`, `mmap`, a tensor in the
    /// processor's memory. It is used in place, and cannot be resized until the region has ended.
    /// With rights, peers on this host map its whole pages, unless other threads run meanwhile.
    #[pyo3(signature = (buffer, rights = None))]
    fn register(&self, buffer: &Bound<'_, PyAny>, rights: Option<u8>) -> PyResult<MemoryRegion> {
        let (py, rights) = (buffer.py(), region::rights(rights)?);
        let writes = rights.intersects(Rights::REMOTE_WRITE | Rights::REMOTE_ATOMIC);
        let (held, is_writable) = match Held::of(buffer, Access::Write) {
            Ok(held) => (held, true),
            Err(error) if writes => return Err(error),
            Err(_) => (Held::of(buffer, Access::Read)?, false),
        };
        let Some(start) = held.start() else {
            return Err(PyBufferError::new_err("a region has at least one byte"));
        };
        let (region, pages) = self.shared.call(py, |function| {
            // SAFETY: the object lends the memory until `held` is dropped, which happens after both
            // regions were deregistered, or after the function has ended.
            unsafe {
                // Peers reach it faster if they can map its pages.
                let pages = match rights.is_empty() {
                    true => None,
                    false => Some(function.register_for_long(start, held.len(), rights)?),
                };
                match function.register_foreign(start, held.len(), rights) {
                    Ok(region) => Ok((region, pages)),
                    Err(error) => {
                        pages.map_or(Ok(()), |pages| function.deregister_foreign(&pages))?;
                        Err(error)
                    }
                }
            }
        })?;
        let brought = Some((buffer.clone().unbind(), held));
        Ok(MemoryRegion::new(self.shared.clone(), region, pages, brought, is_writable))
    }

    /// Makes progress: receives what has arrived and sends what waits. Returns the number of things
    /// done.
    fn progress(&self, py: Python<'_>) -> PyResult<usize> {
        self.shared.call(py, |function| function.progress())
    }

    /// Accepts connection requests on `number`.
    fn listen(&self, py: Python<'_>, number: u32) -> PyResult<Listener> {
        let listener = self.shared.call(py, |function| function.listen(number))?;
        Ok(Listener { shared: self.shared.clone(), listener })
    }

    /// Closes the function. Peers see its end. Calls that wait in other threads end with `Closed`.
    fn close(&self, py: Python<'_>) {
        self.shared.close(py);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*_exception))]
    fn __exit__(&self, py: Python<'_>, _exception: &Bound<'_, PyTuple>) {
        self.shared.close(py);
    }

    fn __repr__(&self) -> String {
        format!("<Function {}>", self.shared.address)
    }
}
