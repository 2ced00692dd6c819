//! The functions of the libfabric that loaded us.
//!
//! They are looked up in the process, not linked: a linked symbol would bind us to the library
//! version of the build, and to its structure sizes.

use crate::abi::{Fid, Info, Provider, error};
use crate::errno::Result;
use crate::pointer::{Buffer, Text};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::ptr::{NonNull, null, null_mut};
use std::sync::OnceLock;

type Define =
    unsafe extern "C" fn(*const Provider, *const c_char, c_int, *const c_char, ...) -> c_int;
type Get = unsafe extern "C" fn(*const Provider, *const c_char, *mut c_void) -> c_int;
type LogEnabled = unsafe extern "C" fn(*const Provider, c_int, c_int) -> c_int;
type Log =
    unsafe extern "C" fn(*const Provider, c_int, c_int, *const c_char, c_int, *const c_char, ...);
type StrError = unsafe extern "C" fn(c_int) -> Text;

/// Functions of the library.
pub struct Library {
    version: unsafe extern "C" fn() -> u32,
    dup_info: unsafe extern "C" fn(*const Info) -> Option<NonNull<Info<'static>>>,
    free_info: unsafe extern "C" fn(NonNull<Info<'static>>),
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
    // SAFETY: fi_provider(3): the provider is ours.
    if unsafe { enabled(provider, level as c_int, CORE) } != 0 {
        let (name, format) = (c"bellwire".as_ptr(), c"%s\n".as_ptr());
        // SAFETY: fi_provider(3): `format` takes one string, `line`.
        unsafe { log(provider, level as c_int, CORE, name, 0, format, line.as_ptr()) };
    }
}

/// The function of this name in the process; `None`: there is none.
///
/// # Safety
/// `F` is the type of a function pointer, as the library's headers declare it.
unsafe fn function<F: Copy>(handle: *mut c_void, name: &CStr) -> Option<F> {
    const { assert!(size_of::<F>() == size_of::<*mut c_void>()) };
    // SAFETY: dlsym(3): `handle` is open, and `name` is a string.
    let address = NonNull::new(unsafe { libc::dlsym(handle, name.as_ptr()) })?;
    // SAFETY: the address is that of a function of type `F`, by the caller's promise.
    Some(unsafe { std::mem::transmute_copy(&address) })
}

impl Library {
    fn find() -> Option<Library> {
        let at = handle();
        // SAFETY: fabric.h declares these, the same in all versions that we support.
        let (version, dup_info, free_info) = unsafe {
            (
                function(at, c"fi_version")?,
                function(at, c"fi_dupinfo")?,
                function(at, c"fi_freeinfo")?,
            )
        };
        // SAFETY: fi_prov.h declares these.
        let (define, get) =
            unsafe { (function(at, c"fi_param_define"), function(at, c"fi_param_get")) };
        // SAFETY: fi_log.h declares these.
        let (log_enabled, log) =
            unsafe { (function(at, c"fi_log_enabled"), function(at, c"fi_log")) };
        // SAFETY: fi_errno.h declares it.
        let strerror = unsafe { function(at, c"fi_strerror") };
        Some(Library { version, dup_info, free_info, define, get, log_enabled, log, strerror })
    }

    /// The version of the running library.
    pub fn version(&self) -> u32 {
        // SAFETY: fi_version(3) takes nothing.
        unsafe { (self.version)() }
    }

    /// An empty info with the size of this library's version, or `ENOMEM`.
    pub fn new_info(&self) -> Result<OwnedInfo> {
        // SAFETY: fi_dupinfo(3) makes a new info for null.
        unsafe { (self.dup_info)(null()) }.map(OwnedInfo).ok_or(error::ENOMEM)
    }

    /// A copy of one info, without its successors, or `ENOMEM`.
    pub fn copy_info(&self, info: &Info) -> Result<OwnedInfo> {
        // SAFETY: fi_dupinfo(3) reads `info` and its attributes.
        unsafe { (self.dup_info)(info) }.map(OwnedInfo).ok_or(error::ENOMEM)
    }

    /// Defines a setting, which the library lists.
    pub fn define(&self, name: &CStr, help: &CStr) {
        const STRING: c_int = 0;
        if let Some(define) = self.define {
            // SAFETY: fi_provider(3): `name` and `help` are strings, and `help` has no formats.
            unsafe { define(crate::provider(), name.as_ptr(), STRING, help.as_ptr()) };
        }
    }

    /// A setting, if the user has set it.
    pub fn setting(&self, name: &CStr) -> Option<String> {
        let mut value = Text::NULL;
        let get = self.get?;
        // SAFETY: fi_provider(3): a string setting needs a place for a string, `value`.
        let error = unsafe { get(crate::provider(), name.as_ptr(), (&raw mut value).cast()) };
        (error == 0).then(|| value.get()).flatten().map(|value| value.to_string_lossy().into())
    }
}

/// An info of the library, with all attributes and its successors.
pub struct OwnedInfo(NonNull<Info<'static>>);

// SAFETY: only this owner reads and writes the info.
unsafe impl Send for OwnedInfo {}

impl OwnedInfo {
    /// The word that a program sees.
    pub fn address(&self) -> usize {
        self.0.as_ptr() as usize
    }

    /// Replaces source and destination, each with its length, by allocated ones.
    pub fn replace_addresses(&mut self, source: (Buffer, usize), destination: (Buffer, usize)) {
        let old = [self.src_addr, self.dest_addr];
        (self.src_addr, self.src_addrlen) = source;
        (self.dest_addr, self.dest_addrlen) = destination;
        for address in old {
            // SAFETY: fi_dupinfo(3) has allocated `address` by malloc(3), and nothing names it now.
            unsafe { libc::free(address.pointer()) };
        }
    }

    /// Leaves it to the program, which will free it.
    pub fn give_away(self) -> *mut Info<'static> {
        ManuallyDrop::new(self).0.as_ptr()
    }
}

impl Deref for OwnedInfo {
    type Target = Info<'static>;
    fn deref(&self) -> &Info<'static> {
        // SAFETY: fi_dupinfo(3) has returned it, and `self` owns it.
        unsafe { self.0.as_ref() }
    }
}

impl DerefMut for OwnedInfo {
    fn deref_mut(&mut self) -> &mut Info<'static> {
        // SAFETY: fi_dupinfo(3) has returned it, and `self` owns it.
        unsafe { self.0.as_mut() }
    }
}

impl Drop for OwnedInfo {
    fn drop(&mut self) {
        if let Some(library) = library() {
            // SAFETY: fi_freeinfo(3) frees what `self` owns.
            unsafe { (library.free_info)(self.0) };
        }
    }
}

/// `fi_cq_strerror`, `fi_eq_strerror`: the meaning of an error in the library's words, also in
/// `into` as far as there is room.
pub extern "C" fn strerror(
    _queue: &Fid,
    number: c_int,
    _data: *const c_void,
    into: Buffer,
    length: usize,
) -> *const c_char {
    let unknown = c"unknown error".as_ptr();
    let Some(Library { strerror: Some(strerror), .. }) = library() else { return unknown };
    // SAFETY: fi_strerror(3) accepts all numbers.
    let text = unsafe { strerror(number.abs()) };
    let Some(words) = text.get() else { return unknown };
    into.write_text(length, words.to_bytes());
    if into.pointer().is_null() || length == 0 { words.as_ptr() } else { into.pointer().cast() }
}

/// The handle for symbol look-ups: the global scope, or the library itself if a program has loaded
/// it privately.
fn handle() -> *mut c_void {
    // SAFETY: dlsym(3): the name is a string.
    if !unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"fi_dupinfo".as_ptr()) }.is_null() {
        return libc::RTLD_DEFAULT;
    }
    let mut found: *mut c_void = null_mut();
    // SAFETY: dl_iterate_phdr(3) passes `look` each loaded object, and `found`.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
    if found.is_null() { libc::RTLD_DEFAULT } else { found }
}

/// Takes the first object with the library's name.
///
/// # Safety
/// The arguments are those of dl_iterate_phdr(3), and `found` is a place for a handle.
unsafe extern "C" fn look(
    object: *mut libc::dl_phdr_info,
    _size: usize,
    found: *mut c_void,
) -> c_int {
    // SAFETY: `object` is a loaded object; its name is a string or null.
    let name = unsafe { (*object).dlpi_name };
    // SAFETY: `name` is a string, since it is not null.
    let named =
        !name.is_null() && unsafe { CStr::from_ptr(name) }.to_string_lossy().contains("/libfabric");
    if !named {
        return 0;
    }
    // SAFETY: dlopen(3): `name` is that of a loaded object.
    let handle = unsafe { libc::dlopen(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    // SAFETY: dlsym(3): `handle` is open.
    if handle.is_null() || unsafe { libc::dlsym(handle, c"fi_dupinfo".as_ptr()) }.is_null() {
        return 0;
    }
    // SAFETY: `found` is the place that `handle` passes.
    unsafe { found.cast::<*mut c_void>().write(handle) };
    1
}
