//! Gates as a shared library, which `make rtl` builds out of `hardware/chpp_nic`
//! (hardware/runner/src/library.cpp). It has four functions:
//!
//! ```c
//! uint64_t bellwire_rtl_layout(void);   /* which signals it has */
//! void *bellwire_rtl_open(void);        /* an interface behind its reset */
//! void bellwire_rtl_cycle(void *interface, const uint64_t *in, uint64_t *out, uint64_t *taps);
//! void bellwire_rtl_close(void *interface);
//! ```

use bellwire_model::chpp::clocked::Interface;
use bellwire_model::cycle::chpp_nic::{In, Out};
use bellwire_model::cycle::nic_core::Taps;
use bellwire_model::cycle::{Ports, layout_hash};
use std::ffi::c_void;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;

type Layout = unsafe extern "C" fn() -> u64;
type Open = unsafe extern "C" fn() -> *mut c_void;
type Cycle = unsafe extern "C" fn(*mut c_void, *const u64, *mut u64, *mut u64);
type Close = unsafe extern "C" fn(*mut c_void);

/// The functions of an open library.
struct Functions {
    open: Open,
    cycle: Cycle,
    close: Close,
    /// Keeps them in memory.
    _library: libloading::Library,
}

/// A library of gates.
#[derive(Clone)]
pub struct Library(Arc<Functions>);

impl Library {
    /// Loads a library. The file must be one that `make rtl` has built: its code runs in this
    /// process.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn load(path: &Path) -> Result<Library, String> {
        let text = |error: libloading::Error| error.to_string();
        // A name without a folder would be looked for in the system's folders.
        let path = std::path::absolute(path).map_err(|error| error.to_string())?;
        // SAFETY: the program chose the file. Verilator's code does nothing when it is loaded.
        let library = unsafe { libloading::Library::new(path) }.map_err(text)?;
        // SAFETY: the functions have these types in the only program that gives them these names,
        // and the pointers do not outlive `library`.
        let functions = unsafe {
            let layout: Layout = *library.get(b"bellwire_rtl_layout\0").map_err(text)?;
            if layout() != layout_hash(&[In::SIGNALS, Out::SIGNALS, Taps::SIGNALS]) {
                return Err("its gates have other ports than this program knows".to_owned());
            }
            Functions {
                open: *library.get(b"bellwire_rtl_open\0").map_err(text)?,
                cycle: *library.get(b"bellwire_rtl_cycle\0").map_err(text)?,
                close: *library.get(b"bellwire_rtl_close\0").map_err(text)?,
                _library: library,
            }
        };
        Ok(Library(Arc::new(functions)))
    }

    /// An interface behind its reset; nothing without memory for it.
    pub fn interface(&self) -> Option<Gates> {
        // SAFETY: the function takes nothing.
        let interface = NonNull::new(unsafe { (self.0.open)() })?;
        Some(Gates { library: self.clone(), interface, taps: Taps::default() })
    }
}

/// An interface in gates.
pub struct Gates {
    library: Library,
    interface: NonNull<c_void>,
    taps: Taps,
}

// SAFETY: an interface has its own state, its own context of Verilator, and no thread of its own.
unsafe impl Send for Gates {}

impl Interface for Gates {
    fn cycle(&mut self, input: In) -> Out {
        let (mut inputs, mut outputs) = ([0; In::WORDS], [0; Out::WORDS]);
        let mut taps = [0; Taps::WORDS];
        input.pack(&mut inputs);
        // SAFETY: the interface is open, and the arrays have as many words as its ports.
        unsafe {
            (self.library.0.cycle)(
                self.interface.as_ptr(),
                inputs.as_ptr(),
                outputs.as_mut_ptr(),
                taps.as_mut_ptr(),
            );
        }
        self.taps = Taps::unpack(&taps);
        Out::unpack(&outputs)
    }

    fn taps(&self) -> Taps {
        self.taps
    }
}

impl Drop for Gates {
    fn drop(&mut self) {
        // SAFETY: nobody uses the interface after this.
        unsafe { (self.library.0.close)(self.interface.as_ptr()) }
    }
}
