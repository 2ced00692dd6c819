//! What we need of the libfabric that loaded us.
//!
//! It is looked up in the process and not linked: a linked symbol would name the version of the library that we were built with, and with it
//! the sizes of structures of that time.

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

/// The library; `None`: there is none in this process.
pub fn library() -> Option<&'static Library> {
    LIBRARY.get_or_init(Library::find).as_ref()
}

/// How much a line of the log matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(i32)]
pub enum Level {
    /// Something is wrong, and the line says what to do.
    Warn = 0,
    /// What was chosen, and why.
    Info = 2,
}

/// Writes a line to the library's log, if it wants lines of this level.
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
        // SAFETY: the types are those of the library's headers, the same in all versions that we serve; a missing function is `None`.
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

    /// An empty info, of the size that this library has; null without memory.
    pub fn new_info(&self) -> *mut Info {
        // SAFETY: the library's function makes a new one of null.
        unsafe { (self.dup_info)(null_mut()) }
    }

    /// A copy of one info, and of nothing behind it; null without memory.
    ///
    /// # Safety
    /// Its pointers are null or valid.
    pub unsafe fn copy_info(&self, info: *const Info) -> *mut Info {
        // SAFETY: the caller's.
        unsafe { (self.dup_info)(info) }
    }

    /// Frees what [`Library::new_info`] and [`Library::copy_info`] made.
    ///
    /// # Safety
    /// It is not used any more.
    pub unsafe fn free_info(&self, info: *mut Info) {
        // SAFETY: the caller's.
        unsafe { (self.free_info)(info) }
    }

    /// Tells the library of a setting, which it lists.
    pub fn define(&self, name: &CStr, help: &CStr) {
        const STRING: c_int = 0;
        if let Some(define) = self.define {
            // SAFETY: the library's function; the help has no formats in it.
            unsafe { define(crate::provider(), name.as_ptr(), STRING, help.as_ptr()) };
        }
    }

    /// A setting, if somebody has set it.
    pub fn setting(&self, name: &CStr) -> Option<String> {
        let mut value: *const c_char = null_mut();
        let get = self.get?;
        // SAFETY: the library's function; settings that were defined as strings come as strings of the environment.
        unsafe {
            let found = get(crate::provider(), name.as_ptr(), (&raw mut value).cast()) == 0;
            (found && !value.is_null())
                .then(|| CStr::from_ptr(value).to_string_lossy().into_owned())
        }
    }

    /// What an error number means.
    pub fn strerror(&self, number: c_int) -> *const c_char {
        match self.strerror {
            // SAFETY: the library's function, which knows all numbers.
            Some(strerror) => unsafe { strerror(number) },
            None => c"unknown error".as_ptr(),
        }
    }
}

/// Where to look for the library's functions: in what everybody sees, or, if a program has loaded the library for itself only, there.
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

/// Takes the first object that is called like the library.
unsafe extern "C" fn look(
    object: *mut libc::dl_phdr_info,
    _size: usize,
    found: *mut c_void,
) -> c_int {
    // SAFETY: the loader gives a live object with a name, or none.
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
