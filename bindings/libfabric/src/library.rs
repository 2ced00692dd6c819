//! The functions of the libfabric that loaded us.
//!
//! They are looked up in the process, not linked: a linked symbol would bind us to the library
//! version of the build, and to its structure sizes.

use crate::abi::{Info, Provider};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;

type Define =
    unsafe extern "C" fn(*const Provider, *const c_char, c_int, *const c_char, ...) -> c_int;
type Get = unsafe extern "C" fn(*const Provider, *const c_char, *mut c_void) -> c_int;
type LogEnabled = unsafe extern "C" fn(*const Provider, c_int, c_int) -> c_int;
type Log =
    unsafe extern "C" fn(*const Provider, c_int, c_int, *const c_char, c_int, *const c_char, ...);
type StrError = unsafe extern "C" fn(c_int) -> *const c_char;

/// Functions of the library.
pub struct Library {
    version: unsafe extern "C" fn() -> u32,
    dup_info: unsafe extern "C" fn(*const Info) -> *mut Info,
    free_info: unsafe extern "C" fn(*mut Info),
    define: Option<Define>,
    get: Option<Get>,
    log_enabled: Option<LogEnabled>,
    log: Option<Log>,
    strerror: Option<StrError>,
}

static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();

/// The library; `None` if the process has none.
pub fn library() -> Option<&'static Library> {
    LIBRARY.get_or_init(Library::find).as_ref()
}

/// The level of a log line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Level {
    /// A fault, with its remedy.
    Warn = 0,
    /// A choice, with its reason.
    Info = 2,
}

/// Writes a line to the library's log, if it logs this level.
pub fn log(level: Level, line: &str) {
    const CORE: c_int = 0;
    let Some(Library { log_enabled: Some(enabled), log: Some(log), .. }) = library() else {
        return;
    };
    let provider = crate::provider();
    let Ok(line) = CString::new(line) else { return };
    // SAFETY: both are the library's functions; the format takes one string.
    unsafe {
        if enabled(provider, level as c_int, CORE) != 0 {
            let name = c"bellwire".as_ptr();
            log(provider, level as c_int, CORE, name, 0, c"%s\n".as_ptr(), line.as_ptr());
        }
    }
}

impl Library {
    fn find() -> Option<Library> {
        let handle = handle();
        let symbol = |name: &CStr| {
            // SAFETY: looks a name up.
            NonNull::new(unsafe { libc::dlsym(handle, name.as_ptr()) })
        };
        // SAFETY: the types are those of the library's headers, the same in all versions that we
        // support. A missing function is `None`.
        unsafe {
            use std::mem::transmute as of;
            Some(Library {
                version: of::<NonNull<c_void>, unsafe extern "C" fn() -> u32>(symbol(
                    c"fi_version",
                )?),
                dup_info: of::<NonNull<c_void>, unsafe extern "C" fn(*const Info) -> *mut Info>(
                    symbol(c"fi_dupinfo")?,
                ),
                free_info: of::<NonNull<c_void>, unsafe extern "C" fn(*mut Info)>(symbol(
                    c"fi_freeinfo",
                )?),
                define: of::<Option<NonNull<c_void>>, Option<Define>>(symbol(c"fi_param_define")),
                get: of::<Option<NonNull<c_void>>, Option<Get>>(symbol(c"fi_param_get")),
                log_enabled: of::<Option<NonNull<c_void>>, Option<LogEnabled>>(symbol(
                    c"fi_log_enabled",
                )),
                log: of::<Option<NonNull<c_void>>, Option<Log>>(symbol(c"fi_log")),
                strerror: of::<Option<NonNull<c_void>>, Option<StrError>>(symbol(c"fi_strerror")),
            })
        }
    }

    /// The version of the running library.
    pub fn version(&self) -> u32 {
        // SAFETY: the library's function, which takes nothing.
        unsafe { (self.version)() }
    }

    /// An empty info with the size of this library's version; null without memory.
    pub fn new_info(&self) -> *mut Info {
        // SAFETY: the library's function; for null it makes a new info.
        unsafe { (self.dup_info)(null_mut()) }
    }

    /// A copy of one info, without its successors; null without memory.
    ///
    /// # Safety
    /// Its pointers are null or valid.
    pub unsafe fn copy_info(&self, info: *const Info) -> *mut Info {
        // SAFETY: the caller's promise.
        unsafe { (self.dup_info)(info) }
    }

    /// Frees an info of [`Library::new_info`] or [`Library::copy_info`].
    ///
    /// # Safety
    /// The info is no longer used.
    pub unsafe fn free_info(&self, info: *mut Info) {
        // SAFETY: the caller's promise.
        unsafe { (self.free_info)(info) }
    }

    /// Defines a setting, which the library lists.
    pub fn define(&self, name: &CStr, help: &CStr) {
        const STRING: c_int = 0;
        if let Some(define) = self.define {
            // SAFETY: the library's function; the help has no formats in it.
            unsafe { define(crate::provider(), name.as_ptr(), STRING, help.as_ptr()) };
        }
    }

    /// A setting, if the user has set it.
    pub fn setting(&self, name: &CStr) -> Option<String> {
        let mut value: *const c_char = null_mut();
        let get = self.get?;
        // SAFETY: the library's function; settings defined as strings come as strings of the
        // environment.
        unsafe {
            let found = get(crate::provider(), name.as_ptr(), (&raw mut value).cast()) == 0;
            (found && !value.is_null())
                .then(|| CStr::from_ptr(value).to_string_lossy().into_owned())
        }
    }

    /// The text of an error number.
    pub fn strerror(&self, number: c_int) -> *const c_char {
        match self.strerror {
            // SAFETY: the library's function, which accepts all numbers.
            Some(strerror) => unsafe { strerror(number) },
            None => c"unknown error".as_ptr(),
        }
    }
}

/// The handle for symbol look-ups: the global scope, or the library itself if a program has loaded
/// it privately.
fn handle() -> *mut c_void {
    // SAFETY: looks a name up.
    if !unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"fi_dupinfo".as_ptr()) }.is_null() {
        return libc::RTLD_DEFAULT;
    }
    let mut found: *mut c_void = null_mut();
    // SAFETY: the callback gets each object that is loaded, and our pointer.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    if found.is_null() { libc::RTLD_DEFAULT } else { found }
}

/// Takes the first object with the library's name.
unsafe extern "C" fn look(
    object: *mut libc::dl_phdr_info,
    _size: usize,
    found: *mut c_void,
) -> c_int {
    // SAFETY: the loader passes a live object with a name, or without one.
    unsafe {
        let name = (*object).dlpi_name;
        if name.is_null() || !CStr::from_ptr(name).to_string_lossy().contains("/libfabric") {
            return 0;
        }
        let handle = libc::dlopen(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() || libc::dlsym(handle, c"fi_dupinfo".as_ptr()).is_null() {
            return 0;
        }
        found.cast::<*mut c_void>().write(handle);
        1
    }
}
