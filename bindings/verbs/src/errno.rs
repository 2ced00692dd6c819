//! Errors, as C has them.

use bellwire_rdma::Refusal;
use std::ffi::c_int;
use std::ptr::null_mut;

/// Sets `errno`, and returns it.
pub fn set(errno: c_int) -> c_int {
    // SAFETY: the address of this thread's own number.
    unsafe { *libc::__errno_location() = errno };
    errno
}

/// The number of a refusal.
pub fn of(refusal: &Refusal) -> c_int {
    match refusal {
        Refusal::Invalid(_) => libc::EINVAL,
        Refusal::Full(_) => libc::ENOMEM,
        Refusal::Busy(_) | Refusal::UnderWay(_) => libc::EBUSY,
        Refusal::Unsupported(_) => libc::EOPNOTSUPP,
        Refusal::System(error) => error.raw_os_error().unwrap_or(libc::EIO),
        Refusal::Device(error) => {
            use bellwire_rdma::DeviceError as E;
            match error {
                E::Exhausted { .. } | E::NoMemory { .. } => libc::ENOMEM,
                E::BadDeviceName { .. } | E::DeviceUnavailable { .. } => libc::ENODEV,
                E::InUse { .. } => libc::EBUSY,
                _ => libc::EIO,
            }
        }
        _ => libc::EINVAL,
    }
}

/// The result of a call that returns 0 or an error. The reason goes to the log if it is asked for.
#[inline(always)]
pub fn answer(what: &str, result: Result<(), Refusal>) -> c_int {
    match result {
        Ok(()) => 0,
        Err(refusal) => refused(what, &refusal),
    }
}

#[cold]
#[inline(never)]
fn refused(what: &str, refusal: &Refusal) -> c_int {
    crate::log::refused(what, refusal);
    set(of(refusal))
}

/// The result of a call that returns a new object or null.
pub fn object<T>(what: &str, result: Result<T, Refusal>) -> *mut T {
    match result {
        Ok(object) => Box::into_raw(Box::new(object)),
        Err(refusal) => {
            refused(what, &refusal);
            null_mut()
        }
    }
}
