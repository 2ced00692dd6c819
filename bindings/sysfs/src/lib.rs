//! A library to be preloaded, for programs that look at `/sys/class/infiniband` and
//! `/dev/infiniband` themselves: they find folders of `BELLWIRE_SYSFS` in their place.
//! `bellwire run --sysfs` writes them.
//!
//! It stands in for the functions of the C library that take a path, and changes that path alone.
//! What the C library calls within itself is not seen here: `glob`, for instance.

use libc::{DIR, FILE, c_char, c_int, c_uint, c_void, mode_t, ssize_t};
use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, Ordering};

/// Folders that are replaced with all that is below them, and what stands for each.
const FOLDERS: [(&[u8], &[u8]); 2] =
    [(b"/sys/class/infiniband", b"/class"), (b"/dev/infiniband", b"/dev")];
/// The longest path, with the zero at its end.
const PATH_BYTES: usize = libc::PATH_MAX as usize;

/// The folder that has the replacements.
fn replacement() -> Option<&'static CStr> {
    static FOUND: OnceLock<Option<&'static CStr>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        // SAFETY: getenv(3) takes a string. Its answer stays: no program sets such a variable.
        let value = unsafe { libc::getenv(c"BELLWIRE_SYSFS".as_ptr()) };
        // SAFETY: it is null or a string.
        (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
    })
}

/// A path of the program, or the one in its place.
struct Path {
    given: *const c_char,
    changed: Option<[u8; PATH_BYTES]>,
}

impl Path {
    /// # Safety
    /// `given` is null or a string.
    unsafe fn of(given: *const c_char) -> Path {
        let unchanged = Path { given, changed: None };
        if given.is_null() {
            return unchanged;
        }
        // SAFETY: the caller's promise.
        let path = unsafe { CStr::from_ptr(given) }.to_bytes();
        let below = FOLDERS.iter().find_map(|(folder, in_place)| {
            let rest = path.strip_prefix(*folder)?;
            matches!(rest, [] | [b'/', ..]).then_some((*in_place, rest))
        });
        let Some(((in_place, rest), folder)) = below.zip(replacement()) else { return unchanged };
        let mut bytes = [0; PATH_BYTES];
        // The byte after it stays zero.
        let mut free = &mut bytes[..PATH_BYTES - 1];
        for part in [folder.to_bytes(), in_place, rest] {
            let Some((place, others)) = free.split_at_mut_checked(part.len()) else {
                return unchanged;
            };
            place.copy_from_slice(part);
            free = others;
        }
        Path { given, changed: Some(bytes) }
    }

    fn as_ptr(&self) -> *const c_char {
        self.changed.as_ref().map_or(self.given, |bytes| bytes.as_ptr().cast())
    }
}

/// The function of this name that would have been called.
fn next(name: &'static CStr, known: &AtomicPtr<c_void>) -> *mut c_void {
    // Relaxed: all threads find the same.
    let function = known.load(Ordering::Relaxed);
    if !function.is_null() {
        return function;
    }
    // SAFETY: dlsym(3) takes a string.
    let function = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    known.store(function, Ordering::Relaxed);
    function
}

/// Functions by their parameters; those before the path, `;`, those behind it. The last column is
/// the answer where the C library has no such function.
macro_rules! functions {
    ($($name:ident($($before:ident: $b:ty),*; $($after:ident: $a:ty),*) -> $result:ty, $failed:expr)*) => {$(
        /// # Safety
        /// As the function of the C library.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            $($before: $b,)* path: *const c_char, $($after: $a,)*
        ) -> $result {
            static NEXT: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
            const NAME: &CStr = match CStr::from_bytes_with_nul(
                concat!(stringify!($name), "\0").as_bytes(),
            ) {
                Ok(name) => name,
                Err(_) => panic!("a name has no zero"),
            };
            let next = next(NAME, &NEXT);
            if next.is_null() {
                // SAFETY: the address of this thread's own number.
                unsafe { *libc::__errno_location() = libc::ENOSYS };
                return $failed;
            }
            type Function = unsafe extern "C" fn($($b,)* *const c_char, $($a,)*) -> $result;
            // SAFETY: the C library's function of this name has these parameters.
            let next = unsafe { std::mem::transmute::<*mut c_void, Function>(next) };
            // SAFETY: the caller's promise.
            let path = unsafe { Path::of(path) };
            // SAFETY: the caller's promise; the path is a string for as long as the call lasts.
            unsafe { next($($before,)* path.as_ptr(), $($after,)*) }
        }
    )*};
}

// `open` and its likes take a mode only with some flags. On the processors that this library is for
// an argument that was not passed is a register with any value, which is passed on and not used.
functions! {
    open(; flags: c_int, mode: mode_t) -> c_int, -1
    open64(; flags: c_int, mode: mode_t) -> c_int, -1
    __open_2(; flags: c_int) -> c_int, -1
    __open64_2(; flags: c_int) -> c_int, -1
    openat(folder: c_int; flags: c_int, mode: mode_t) -> c_int, -1
    openat64(folder: c_int; flags: c_int, mode: mode_t) -> c_int, -1
    __openat_2(folder: c_int; flags: c_int) -> c_int, -1
    __openat64_2(folder: c_int; flags: c_int) -> c_int, -1
    fopen(; mode: *const c_char) -> *mut FILE, std::ptr::null_mut()
    fopen64(; mode: *const c_char) -> *mut FILE, std::ptr::null_mut()
    opendir(;) -> *mut DIR, std::ptr::null_mut()
    scandir(; list: *mut c_void, filter: *const c_void, order: *const c_void) -> c_int, -1
    scandir64(; list: *mut c_void, filter: *const c_void, order: *const c_void) -> c_int, -1
    stat(; to: *mut c_void) -> c_int, -1
    stat64(; to: *mut c_void) -> c_int, -1
    lstat(; to: *mut c_void) -> c_int, -1
    lstat64(; to: *mut c_void) -> c_int, -1
    fstatat(folder: c_int; to: *mut c_void, flags: c_int) -> c_int, -1
    fstatat64(folder: c_int; to: *mut c_void, flags: c_int) -> c_int, -1
    __xstat(version: c_int; to: *mut c_void) -> c_int, -1
    __xstat64(version: c_int; to: *mut c_void) -> c_int, -1
    __lxstat(version: c_int; to: *mut c_void) -> c_int, -1
    __lxstat64(version: c_int; to: *mut c_void) -> c_int, -1
    statx(folder: c_int; flags: c_int, mask: c_uint, to: *mut c_void) -> c_int, -1
    access(; mode: c_int) -> c_int, -1
    faccessat(folder: c_int; mode: c_int, flags: c_int) -> c_int, -1
    readlink(; to: *mut c_char, size: usize) -> ssize_t, -1
    readlinkat(folder: c_int; to: *mut c_char, size: usize) -> ssize_t, -1
    realpath(; to: *mut c_char) -> *mut c_char, std::ptr::null_mut()
    __realpath_chk(; to: *mut c_char, size: usize) -> *mut c_char, std::ptr::null_mut()
}
