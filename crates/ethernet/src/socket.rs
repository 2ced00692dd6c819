//! The few socket calls that all kinds of frame I/O need, with the kernel's answer as an
//! `io::Error`.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A new socket, closed on exec and non-blocking.
pub(crate) fn open(domain: i32, kind: i32, protocol: i32) -> io::Result<OwnedFd> {
    // SAFETY: a plain system call; the descriptor that it returns is ours alone.
    unsafe {
        let fd = libc::socket(domain, kind | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK, protocol);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// Sets an option to the bytes of `value`.
pub(crate) fn set<T: Copy>(fd: BorrowedFd<'_>, level: i32, name: i32, value: &T) -> io::Result<()> {
    // SAFETY: the kernel reads `size_of::<T>()` bytes at `value`, which is borrowed for the call.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as u32,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Reads an option; `initial` is the value of bytes that the kernel does not write.
///
/// `T` must be a plain C structure of integers, for which all bytes are a value.
pub(crate) fn query<T: Copy>(
    fd: BorrowedFd<'_>,
    level: i32,
    name: i32,
    initial: T,
) -> io::Result<T> {
    let mut value = initial;
    let mut length = size_of::<T>() as u32;
    // SAFETY: the kernel writes at most `length` bytes to `value`, and all bytes are a value of its
    // type (see above).
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            level,
            name,
            std::ptr::from_mut(&mut value).cast(),
            &mut length,
        )
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(value) }
}

/// Binds to an address that is a plain C structure.
pub(crate) fn bind<T>(fd: BorrowedFd<'_>, address: &T, length: usize) -> io::Result<()> {
    assert!(length <= size_of::<T>());
    // SAFETY: the kernel reads `length` bytes at `address`, which are there.
    let result =
        unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(address).cast(), length as u32) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Like [`bind`], for an address whose socket may have been closed just now. When another thread
/// starts a process, that process holds copies of all descriptors until it executes its program,
/// and with them the address. On a busy machine that lasts: an address that this process had is
/// waited for longer. One that it has is not waited for.
pub(crate) fn bind_anew<T>(fd: BorrowedFd<'_>, address: &T, length: usize) -> io::Result<Name> {
    assert!(length <= size_of::<T>());
    // SAFETY: an address of a socket has no padding, and `length` bytes are there.
    let bytes = unsafe { std::slice::from_raw_parts(std::ptr::from_ref(address).cast(), length) };
    // Networks have addresses of their own. Linux before 5.14 does not tell them apart.
    let network = query(fd, libc::SOL_SOCKET, libc::SO_NETNS_COOKIE, 0u64).unwrap_or(0);
    let name: Box<[u8]> = [&network.to_ne_bytes(), bytes].concat().into();
    retry(patience(&name, std::process::id()), &[libc::EADDRINUSE], || bind(fd, address, length))?;
    Ok(Name::new(name))
}

/// How long an address may stay taken after a socket of this process had it, and after one of
/// another process had.
const OURS: Duration = Duration::from_secs(5);
const THEIRS: Duration = Duration::from_millis(100);

/// The network and the address that a socket of this process is bound to, as long as this exists.
pub(crate) struct Name(Box<[u8]>);

/// A name of a process, and when it ended.
struct Known {
    name: Box<[u8]>,
    process: u32,
    ended: Option<Instant>,
}

/// Names that live, or ended in the last [`OURS`]. A forked child has its parent's.
static NAMES: Mutex<Vec<Known>> = Mutex::new(Vec::new());

fn patience(name: &[u8], process: u32) -> Duration {
    let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    match names.iter().find(|known| known.process == process && *known.name == *name) {
        Some(Known { ended: None, .. }) => Duration::ZERO,
        Some(Known { ended: Some(since), .. }) if since.elapsed() < OURS => OURS,
        _ => THEIRS,
    }
}

impl Name {
    fn new(name: Box<[u8]>) -> Name {
        note(&name, None);
        Name(name)
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        note(&self.0, Some(Instant::now()));
    }
}

/// Enters what becomes of a name, and forgets those that ended long ago.
fn note(name: &[u8], ended: Option<Instant>) {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    names.retain(|known| {
        *known.name != *name && known.ended.is_none_or(|since| since.elapsed() < OURS)
    });
    names.push(Known { name: name.into(), process: std::process::id(), ended });
}

/// Repeats a call that fails with one of the errors `busy`, every millisecond for at most `moment`.
pub(crate) fn retry<T>(
    moment: Duration,
    busy: &[i32],
    call: impl Fn() -> io::Result<T>,
) -> io::Result<T> {
    let since = Instant::now();
    let is_busy = |error: &io::Error| error.raw_os_error().is_some_and(|code| busy.contains(&code));
    loop {
        match call() {
            Err(error) if is_busy(&error) && since.elapsed() < moment => {
                std::thread::sleep(Duration::from_millis(1));
            }
            other => return other,
        }
    }
}

/// Asks for send and receive buffers of `bytes`: beyond the system's limit with CAP_NET_ADMIN, up
/// to it without. Returns the size of the receive buffer.
pub(crate) fn enlarge_buffers(fd: BorrowedFd<'_>, bytes: i32) -> usize {
    for (force, plain) in
        [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
    {
        if set(fd, libc::SOL_SOCKET, force, &bytes).is_err() {
            // The kernel applies its limit by itself.
            let _ = set(fd, libc::SOL_SOCKET, plain, &bytes);
        }
    }
    query(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, 0).unwrap_or(0).max(0) as usize
}

/// Sends one buffer to the peer that the socket is bound or connected to.
#[inline]
pub(crate) fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the kernel reads `bytes`, which are borrowed for the call.
    let sent = unsafe {
        libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_DONTWAIT)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
}

/// Receives one datagram from a connected socket. Returns its length.
#[inline]
pub(crate) fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the kernel writes at most the length of `buffer`, which is borrowed for the call.
    let length = unsafe {
        let (to, room) = (buffer.as_mut_ptr().cast(), buffer.len());
        libc::recv(fd.as_raw_fd(), to, room, libc::MSG_DONTWAIT)
    };
    usize::try_from(length).map_err(|_| io::Error::last_os_error())
}

/// Sends one buffer to an address that is a plain C structure of `length` bytes.
#[inline]
pub(crate) fn send_to<T>(
    fd: BorrowedFd<'_>,
    bytes: &[u8],
    address: &T,
    length: usize,
) -> io::Result<usize> {
    debug_assert!(length <= size_of::<T>());
    let (to, flags) = (std::ptr::from_ref(address).cast(), libc::MSG_DONTWAIT);
    // SAFETY: the kernel reads the bytes and the address, both of which are there.
    let sent = unsafe {
        libc::sendto(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags, to, length as u32)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
}

/// Sends up to `count` messages; returns how many.
///
/// # Safety
/// There are `count` headers from the first on, and all that they point to is readable.
pub(crate) unsafe fn send_many(
    fd: BorrowedFd<'_>,
    first: *mut libc::mmsghdr,
    count: usize,
) -> io::Result<usize> {
    // SAFETY: the caller's promise.
    let sent = unsafe { libc::sendmmsg(fd.as_raw_fd(), first, count as u32, libc::MSG_DONTWAIT) };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(sent as usize) }
}

/// Whether a read would give something now.
pub(crate) fn is_readable(fd: BorrowedFd<'_>) -> bool {
    is_one_readable(&[fd])
}

/// The same of at least one of several, by one system call.
pub(crate) fn is_one_readable(fds: &[BorrowedFd<'_>]) -> bool {
    let entry =
        |fd: &BorrowedFd<'_>| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut fds: Vec<libc::pollfd> = fds.iter().map(entry).collect();
    // SAFETY: so many entries, which are ours.
    unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, 0) > 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace::Namespace;
    use std::cell::Cell;
    use std::os::fd::AsFd;

    /// A busy call is repeated until it succeeds, fails otherwise, or its moment is over.
    #[test]
    fn busy_calls_are_repeated() {
        let calls = Cell::new(0);
        let failing = |code: i32, times: i32| {
            calls.set(0);
            let calls = &calls;
            move || {
                calls.set(calls.get() + 1);
                if calls.get() > times { Ok(7) } else { Err(io::Error::from_raw_os_error(code)) }
            }
        };
        let busy = [libc::EBUSY, libc::EEXIST];
        let long = Duration::from_secs(60);
        for code in busy {
            assert_eq!(retry(long, &busy, failing(code, 3)).expect("at last"), 7);
            assert_eq!(calls.get(), 4);
        }
        retry(long, &busy, failing(libc::ENOENT, 3)).expect_err("another error");
        assert_eq!(calls.get(), 1);
        let since = Instant::now();
        let moment = Duration::from_millis(20);
        retry(moment, &busy, failing(libc::EBUSY, i32::MAX)).expect_err("its moment is over");
        assert!(since.elapsed() >= moment && calls.get() > 1, "{} calls", calls.get());
        let ended = retry(long, &busy, || Err::<(), _>(io::Error::other("no number")));
        ended.expect_err("it has no number");
    }

    /// An address that this process had is waited for longer than a moment. Here a copy of its
    /// descriptor takes the place of the one that a process holds when another thread starts it.
    #[test]
    fn own_addresses_are_waited_for() {
        let open = || open(libc::AF_UNIX, libc::SOCK_DGRAM, 0).expect("a socket");
        let text = format!("\0bellwire-socket-{}", std::process::id());
        // SAFETY: zeros are a valid address.
        let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
        address.sun_family = libc::AF_UNIX as u16;
        for (to, from) in address.sun_path.iter_mut().zip(text.bytes()) {
            *to = from as libc::c_char;
        }
        let length = std::mem::offset_of!(libc::sockaddr_un, sun_path) + text.len();
        let (first, second) = (open(), open());
        let name = bind_anew(first.as_fd(), &address, length).expect("free");
        bind_anew(second.as_fd(), &address, length).map(drop).expect_err("it has an owner");
        let copy = first.try_clone().expect("a copy");
        drop((first, name));
        // The same address in another network says nothing.
        let elsewhere =
            Namespace::new().expect("NOT RUN: a namespace needs root, and ip of iproute2");
        let third = elsewhere.run(open).expect("a namespace");
        let _lives = bind_anew(third.as_fd(), &address, length).expect("free in that network");
        let gone = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            drop(copy);
        });
        bind_anew(second.as_fd(), &address, length).map(drop).expect("free again");
        gone.join().expect("no panic");
    }

    /// A name that lives is not waited for, and one that has ended is, for a while. A forked child
    /// has the list of its parent, and that does not count.
    #[test]
    fn names_are_remembered_for_a_while() {
        let name =
            |what: &str| -> Box<[u8]> { format!("name of a test: {what}").as_bytes().into() };
        let own = std::process::id();
        let patience = |what| super::patience(&name(what), own);
        let count = |name: &[u8]| {
            let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
            names.iter().filter(|known| *known.name == *name).count()
        };
        let long_ago = Instant::now().checked_sub(OURS * 2).expect("the host runs for longer");
        note(&name("old"), Some(long_ago));
        assert_eq!(patience("old"), THEIRS);
        assert_eq!(patience("first"), THEIRS);
        let [first, second] = ["first", "second"].map(|what| Name::new(name(what)));
        assert_eq!(patience("first"), Duration::ZERO, "it lives");
        assert_eq!(count(&name("old")), 0, "it is forgotten");
        drop(first);
        assert_eq!((patience("first"), patience("second")), (OURS, Duration::ZERO));
        assert_eq!(super::patience(&name("first"), own ^ 1), THEIRS);
        let again = Name::new(name("first"));
        assert_eq!((patience("first"), count(&name("first"))), (Duration::ZERO, 1));
        drop((again, second));
        assert_eq!((patience("first"), patience("second")), (OURS, OURS));
        assert_eq!(count(&name("first")), 1);
    }

    /// A socket is closed on exec, does not block, and has buffers as large as it may.
    #[test]
    fn sockets_are_set_up() {
        let socket = open(libc::AF_UNIX, libc::SOCK_DGRAM, 0).expect("a socket");
        let fd = socket.as_raw_fd();
        // SAFETY: queries without side effects.
        let [exec, status] =
            unsafe { [libc::fcntl(fd, libc::F_GETFD), libc::fcntl(fd, libc::F_GETFL)] };
        assert_eq!((exec & libc::FD_CLOEXEC, status & libc::O_NONBLOCK != 0), (1, true));
        let plain = query(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, 0).expect("a size");
        let size = enlarge_buffers(socket.as_fd(), 100_000);
        assert!(size >= 100_000 || size >= plain as usize, "{size} bytes");
        let told = query(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, 0).expect("a size");
        assert_eq!(size, told as usize);
        open(-1, libc::SOCK_DGRAM, 0).expect_err("no such family");
        set(socket.as_fd(), -1, -1, &1i32).expect_err("no such option");
        query(socket.as_fd(), -1, -1, 1i32).expect_err("no such option");
        assert!(!is_readable(socket.as_fd()));
        receive(socket.as_fd(), &mut [0; 8]).expect_err("nothing is there");
        send(socket.as_fd(), b"it is not connected").expect_err("to nobody");
    }
}
