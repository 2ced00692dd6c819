//! Posting: from Python's objects to buffers of the library.

use crate::books::{Pending, TRANSIENT};
use crate::held::{Access, Held};
use crate::region::{MemoryRegion, RegionSlice};
use crate::shared::Shared;
use bellwire::{Buffer, Function, Result, Rights};
use pyo3::exceptions::PyBufferError;
use pyo3::prelude::*;

/// Memory that a program names in a descriptor.
pub enum Data {
    /// A part of a registered region.
    Part(bellwire::RegionSlice),
    /// Memory of an object, registered for the descriptor alone.
    Held(Held),
}

impl Data {
    pub fn of(object: &Bound<'_, PyAny>, access: Access) -> PyResult<Data> {
        let part = match (object.cast::<MemoryRegion>(), object.cast::<RegionSlice>()) {
            (Ok(region), _) => region.get().whole()?,
            (_, Ok(slice)) => slice.get().part(),
            _ => return Ok(Data::Held(Held::of(object, access)?)),
        };
        if access == Access::Write && !part.is_writable {
            return Err(PyBufferError::new_err("this region's memory is read-only"));
        }
        Ok(Data::Part(part.slice))
    }

    pub fn len(&self) -> usize {
        match self {
            Data::Part(slice) => slice.len(),
            Data::Held(held) => held.len(),
        }
    }

    /// A buffer of it. Registers the memory, if that is needed.
    fn buffer(
        &self,
        function: &mut Function,
        rights: Rights,
        transient: &mut Vec<bellwire::MemoryRegion>,
    ) -> Result<Buffer> {
        let held = match self {
            Data::Part(slice) => return Ok(slice.clone().into()),
            Data::Held(held) => held,
        };
        let Some(start) = held.start() else { return Ok(Vec::new().into()) };
        // SAFETY: the object lends the memory until `held` is dropped. That happens after the
        // region was deregistered, or after the function has ended.
        let region = unsafe { function.register_foreign(start, held.len(), rights)? };
        let slice = region.slice(0, held.len());
        transient.push(region);
        Ok(slice.into())
    }
}

/// What is posted, before it has buffers.
pub struct Posting {
    pub context: Py<PyAny>,
    /// The program's objects, in order.
    pub objects: Vec<Py<PyAny>>,
    pub data: Vec<Data>,
    /// What peers may do with the memory of objects meanwhile.
    pub rights: Rights,
    pub flags: u64,
}

impl Shared {
    /// Posts a descriptor by `post`, which gets the buffers and the number of the descriptor.
    pub fn post(
        &self,
        py: Python<'_>,
        posting: Posting,
        post: impl FnOnce(&mut Function, Vec<Buffer>, u64) -> Result<()>,
    ) -> PyResult<u64> {
        let Posting { context, objects, data, rights, mut flags } = posting;
        let (none, transient) = (Vec::new(), Vec::new());
        let mut pending = Pending { context, buffers: objects, data: none, transient };
        // What was refused ends after the call, as it is the program's.
        let mut refused = None;
        let posted = self.call(py, |function| {
            let mut buffers = Vec::with_capacity(data.len());
            let mut result = Ok(());
            for data in &data {
                match data.buffer(function, rights, &mut pending.transient) {
                    Ok(buffer) => buffers.push(buffer),
                    Err(error) => {
                        result = Err(error);
                        break;
                    }
                }
            }
            if !pending.transient.is_empty() {
                flags |= TRANSIENT;
            }
            pending.data = data;
            let token = self.books().enter(pending, flags);
            result = result.and_then(|()| post(function, buffers, token));
            let Err(error) = result else { return Ok(token) };
            // The refused descriptor is gone, and with it the handles of its regions.
            let mut books = self.books();
            books.end(function, token);
            refused = books.leave(token);
            Err(error)
        });
        drop(refused);
        posted
    }
}
