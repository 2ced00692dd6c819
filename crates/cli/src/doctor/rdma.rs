//! Whether programs of RDMA would find a library, and it a device.

use super::Check;
use crate::run::{NAMES, library_folder};
use anyhow::{Context, Result, bail};
use bellwire_rdma::HostDevice;
use std::ffi::{CStr, CString, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::null_mut;

const NAME: &str = "RDMA (verbs)";

/// Loads the library as a program would, and opens its first device.
pub fn check() -> Check {
    let own = std::env::current_exe().context("finding the place of this command");
    let folder = match own.and_then(|own| library_folder(&own)) {
        Ok(folder) => folder,
        Err(_) => {
            let found = format!("no {} beside this command", NAMES[0]);
            return Check::missing(NAME, found, "make install, or cargo build -p bellwire-verbs");
        }
    };
    let all = HostDevice::all();
    let devices = all.iter().map(|device| format!("{} ({})", device.name, device.host));
    match open_first(&folder.join(NAMES[0])) {
        Ok(()) => Check::good(NAME, devices.collect::<Vec<_>>().join(", ")),
        Err(error) => {
            let hint = "bellwire run -v -- ibv_devinfo says more";
            Check::missing(NAME, crate::command::sentence(&error), hint)
        }
    }
}

/// Opens the first device of a libibverbs, and closes it again.
fn open_first(library: &Path) -> Result<()> {
    let path = CString::new(library.as_os_str().as_bytes()).context("its path")?;
    // SAFETY: a string; the library's initializers do nothing that concerns this program.
    let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if library.is_null() {
        // SAFETY: after a failure it is a string.
        let why = unsafe { CStr::from_ptr(libc::dlerror()) };
        bail!("{}", why.to_string_lossy());
    }
    let call = |name: &CStr| -> Result<*mut c_void> {
        // SAFETY: an open library and a string.
        let found = unsafe { libc::dlsym(library, name.as_ptr()) };
        if found.is_null() {
            bail!("{} has no {}", path.to_string_lossy(), name.to_string_lossy());
        }
        Ok(found)
    };
    let [list, free, open, close] =
        [c"ibv_get_device_list", c"ibv_free_device_list", c"ibv_open_device", c"ibv_close_device"]
            .map(call);
    type List = unsafe extern "C" fn(*mut c_int) -> *mut *mut c_void;
    type Free = unsafe extern "C" fn(*mut *mut c_void);
    type Open = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
    type Close = unsafe extern "C" fn(*mut c_void) -> c_int;
    // SAFETY: the functions have these types: infiniband/verbs.h.
    let (list, free, open, close) = unsafe {
        (
            std::mem::transmute::<*mut c_void, List>(list?),
            std::mem::transmute::<*mut c_void, Free>(free?),
            std::mem::transmute::<*mut c_void, Open>(open?),
            std::mem::transmute::<*mut c_void, Close>(close?),
        )
    };
    // SAFETY: ibv_get_device_list(3): a list that ends with null, and lives until it is freed.
    unsafe {
        let devices = list(null_mut());
        if devices.is_null() || (*devices).is_null() {
            bail!("there is no device");
        }
        let context = open(*devices);
        let why = std::io::Error::last_os_error();
        free(devices);
        if context.is_null() {
            return Err(why).context("the first device cannot be opened");
        }
        close(context);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is not a library, or another one, is said to be so.
    #[test]
    fn other_files_are_no_library() {
        let error = open_first(Path::new("/nonexistent/libibverbs.so.1")).unwrap_err();
        assert!(error.to_string().contains("/nonexistent"), "{error}");
        let error = open_first(Path::new("libc.so.6")).unwrap_err();
        assert!(error.to_string().contains("ibv_get_device_list"), "{error}");
    }
}
