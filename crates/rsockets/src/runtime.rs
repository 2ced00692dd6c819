//! What the sockets of a process share: its devices, its manager, its service, and their numbers.

use crate::device::Devices;
use crate::service::Service;
use crate::socket::Socket;
use bellwire_rdmacm::Manager;
use std::io;
use std::os::fd::RawFd;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, Once, PoisonError, RwLock};

/// The sockets of a process.
pub struct Runtime {
    pub devices: Devices,
    manager: Mutex<Option<Manager>>,
    service: Mutex<Option<Arc<Service>>>,
    /// By number.
    table: RwLock<Vec<Option<Arc<Socket>>>>,
}

/// That of this process.
static CURRENT: AtomicPtr<Runtime> = AtomicPtr::new(null_mut());
/// That of the parent, in a process that was forked: its numbers do not work here.
static PARENT: AtomicPtr<Runtime> = AtomicPtr::new(null_mut());

impl Runtime {
    /// That of this process, made at first use.
    pub fn current() -> &'static Runtime {
        if let Some(current) = Runtime::if_any() {
            return current;
        }
        static LOCK: Mutex<()> = Mutex::new(());
        static ONCE: Once = Once::new();
        let _guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(current) = Runtime::if_any() {
            return current;
        }
        let new = Box::new(Runtime {
            devices: Devices::new(),
            manager: Mutex::default(),
            service: Mutex::default(),
            table: RwLock::default(),
        });
        let new = Box::into_raw(new);
        // Release: who sees the pointer sees what it points to.
        CURRENT.store(new, Ordering::Release);
        // SAFETY: functions of this library, which is not unloaded before.
        ONCE.call_once(|| unsafe {
            libc::pthread_atfork(None, None, Some(in_child));
            libc::atexit(at_exit);
        });
        // SAFETY: it is never freed.
        unsafe { &*new }
    }

    /// That of this process, if it has sockets.
    pub fn if_any() -> Option<&'static Runtime> {
        // SAFETY: null, or never freed. Acquire: with the store above.
        unsafe { CURRENT.load(Ordering::Acquire).as_ref() }
    }

    /// The manager, whose thread starts at first use.
    pub fn manager(&self) -> io::Result<Manager> {
        let mut manager = self.manager.lock().unwrap_or_else(PoisonError::into_inner);
        match &*manager {
            Some(manager) => Ok(manager.clone()),
            None => Ok(manager.insert(Manager::new()?).clone()),
        }
    }

    /// The service, whose thread starts at first use.
    pub fn service(&self) -> io::Result<Arc<Service>> {
        let mut service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        match &*service {
            Some(service) => Ok(service.clone()),
            None => Ok(service.insert(Service::new()?).clone()),
        }
    }

    /// The socket of a number.
    #[inline]
    pub fn find(&self, number: RawFd) -> Option<Arc<Socket>> {
        let index = usize::try_from(number).ok()?;
        let table = self.table.read().unwrap_or_else(PoisonError::into_inner);
        table.get(index)?.clone()
    }

    /// A number is a socket's from now on.
    pub fn insert(&self, number: RawFd, socket: Arc<Socket>) {
        let index = usize::try_from(number).expect("a descriptor");
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        if table.len() <= index {
            table.resize(index + 1, None);
        }
        table[index] = Some(socket);
    }

    /// A number is no socket's any more.
    pub fn remove(&self, number: RawFd) -> Option<Arc<Socket>> {
        let index = usize::try_from(number).ok()?;
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        table.get_mut(index)?.take()
    }

    /// Whether the number is a socket of the process that forked this one.
    pub fn is_of_parent(number: RawFd) -> bool {
        // SAFETY: as for `CURRENT`.
        let parent = unsafe { PARENT.load(Ordering::Acquire).as_ref() };
        let (Some(parent), Ok(index)) = (parent, usize::try_from(number)) else { return false };
        // A thread that held it does not exist here.
        parent.table.try_read().is_ok_and(|table| table.get(index).is_some_and(Option::is_some))
    }

    /// The number was closed in this process, too.
    pub fn forget_of_parent(number: RawFd) {
        // SAFETY: as for `CURRENT`.
        let parent = unsafe { PARENT.load(Ordering::Acquire).as_ref() };
        let (Some(parent), Ok(index)) = (parent, usize::try_from(number)) else { return };
        if let Ok(mut table) = parent.table.try_write()
            && let Some(place) = table.get_mut(index)
        {
            // Its end would be the parent's.
            std::mem::forget(place.take());
        }
    }
}

/// A forked process has none of the threads, and its devices belong to its parent.
extern "C" fn in_child() {
    let current = CURRENT.swap(null_mut(), Ordering::AcqRel);
    if !current.is_null() {
        PARENT.store(current, Ordering::Release);
    }
}

/// What was written is to arrive, as with sockets of the kernel.
extern "C" fn at_exit() {
    let Some(runtime) = Runtime::if_any() else { return };
    let open: Vec<Arc<Socket>> = match runtime.table.try_read() {
        Ok(table) => table.iter().flatten().cloned().collect(),
        Err(_) => Vec::new(),
    };
    let service = runtime.service.try_lock().ok().and_then(|service| service.clone());
    crate::service::leave(service.as_deref(), open);
    runtime.devices.leave();
}
