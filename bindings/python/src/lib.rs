//! Bellwire for Python: the extension behind the package `bellwire`.
//!
//! It turns calls of Python into calls of the library, and holds no logic of its own. What it
//! knows is memory: an object whose memory a descriptor uses is held until the completion
//! (`held.rs`, `books.rs`), and which lock is taken when (`shared.rs`).

mod address;
mod awaited;
mod books;
mod completion;
mod completion_queue;
mod connection;
mod enums;
mod errors;
mod exporter;
mod function;
mod held;
mod model;
mod post;
mod queue_pair;
mod region;
mod shared;
mod sweep;

use pyo3::prelude::*;

/// The extension module.
#[pymodule]
fn _bellwire(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<address::Address>()?;
    module.add_class::<completion::Completion>()?;
    module.add_class::<completion_queue::CompletionQueue>()?;
    module.add_class::<connection::ConnectionRequest>()?;
    module.add_class::<connection::Listener>()?;
    module.add_class::<function::Device>()?;
    module.add_class::<function::Function>()?;
    module.add_class::<queue_pair::QueuePair>()?;
    module.add_class::<queue_pair::SharedReceiveQueue>()?;
    module.add_class::<region::MemoryRegion>()?;
    module.add_class::<region::RegionSlice>()?;
    module.add_class::<region::RemoteAt>()?;
    module.add_class::<region::RemoteKey>()?;
    module.add_class::<region::RemoteSlice>()?;
    module.add_function(wrap_pyfunction!(function::kinds, module)?)?;
    module.add_function(wrap_pyfunction!(function::open_queue_pair, module)?)?;
    module.add_function(wrap_pyfunction!(shared::_close_all, module)?)?;
    model::add(module)?;
    sweep::add(module)
}
