//! Frames by AF_XDP: a program in the link layer puts our frames into our memory, and all others go
//! their usual way.
//!
//! If the driver can, the card itself writes to and reads from our memory. Otherwise the kernel
//! copies once each way. One function of an interface can have it; others of the same interface use
//! [`crate::packet`].

mod program;
mod ring;
mod umem;

use crate::frame_io::{FrameIo, IoCounters, is_for_later};
use crate::interface::Interface;
use crate::link_header::{self, EVERY_FUNCTION, FUNCTION_OFFSET, LINK_HEADER_BYTES, Mac};
use crate::memory;
use crate::packet::PacketIo;
use crate::pcapng::{Direction, LinkType};
use crate::socket;
use program::Attached;
pub use program::Hook;
use ring::Ring;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Weak};
use std::time::Duration;
use umem::Umem;

/// Entries of a ring, a power of two. They limit the received frames of a queue that wait for us,
/// and the frames to send that wait for the kernel.
const RING_ENTRIES: u32 = 1024;

/// How long a queue may stay busy after its last owner has closed it.
const CLEARING_UP: Duration = Duration::from_secs(5);

/// How frames get into and out of our memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// By the card.
    ZeroCopy,
    /// The kernel copies them, called by the driver.
    Native,
    /// The kernel copies them, behind the driver.
    Generic,
}

impl Mode {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Mode::ZeroCopy => "zero-copy",
            Mode::Native => "native (one copy)",
            Mode::Generic => "generic (one copy)",
        }
    }

    fn hook(self) -> Hook {
        if self == Mode::Generic { Hook::Generic } else { Hook::Driver }
    }
}

/// AF_XDP of one function.
// Fields are dropped in this order: program, sockets, memory.
pub struct XdpIo {
    _attached: Attached,
    queues: Vec<Queue>,
    /// Frames for all functions: the program leaves these to the kernel's stack, and this socket
    /// receives them.
    side: Box<PacketIo>,
    umem: Umem,
    /// Free chunks for sending.
    free: Vec<u64>,
    mode: Mode,
    own: Mac,
    frame_bytes: usize,
    /// Frames were produced, and the kernel was not told yet.
    staged: bool,
    /// Drive the card by polling instead of waiting for its interrupts (H-08).
    drives: bool,
    counters: IoCounters,
    life: Arc<()>,
}

/// One queue of the interface.
struct Queue {
    received: Ring<libc::xdp_desc>,
    fill: Ring<u64>,
    sent: Ring<u64>,
    send: Ring<libc::xdp_desc>,
    socket: OwnedFd,
}

impl XdpIo {
    /// Opens `function` on all queues of `interface`.
    ///
    /// # Errors
    /// - `PermissionDenied` without CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF.
    /// - `ResourceBusy` if another program or process has the interface's hook.
    /// - `Unsupported` if the interface's frames do not fit in a page, or the driver lacks this
    ///   mode.
    pub fn open(interface: &Interface, function: u8, mode: Mode) -> io::Result<XdpIo> {
        let largest = interface.mtu + LINK_HEADER_BYTES;
        let chunk_bytes = umem::chunk_bytes(largest).ok_or_else(|| {
            let why = format!("frames of {largest} bytes do not fit in a page");
            io::Error::new(io::ErrorKind::Unsupported, why)
        })?;
        let count = interface.queues;
        let chunks = RING_ENTRIES as usize * (count as usize + 1);
        let umem = Umem::new(chunk_bytes, chunks)?;
        let mut queues: Vec<Queue> = Vec::new();
        let address = |chunk: usize| (chunk * chunk_bytes) as u64;
        let attach = || Attached::attach(interface, function, mode.hook());
        let mut attached = None;
        for number in 0..count {
            let first = queues.first().map(|queue| queue.socket.as_fd());
            let open = || Queue::open(&umem, interface.index, number, first, mode);
            let mut queue = match open() {
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {
                    // If the hook is taken too, its owner has the queue. If not, the kernel will
                    // release the queue soon.
                    if attached.is_none() {
                        attached = Some(attach()?);
                    }
                    // The kernel releases the queue in a worker, once all readers of its socket
                    // have finished.
                    socket::retry(CLEARING_UP, &[libc::EBUSY], open)?
                }
                opened => opened?,
            };
            let chunks = RING_ENTRIES as usize * number as usize..;
            for chunk in chunks.take(RING_ENTRIES as usize) {
                assert!(queue.fill.produce(address(chunk)), "the ring was empty");
            }
            queue.fill.publish_produced();
            queues.push(queue);
        }
        // Attach only once all sockets are open.
        let attached = attached.map_or_else(attach, Ok)?;
        for (number, queue) in (0..).zip(&queues) {
            attached.serve(number, queue.socket.as_fd())?;
        }
        let free = (RING_ENTRIES as usize * count as usize..chunks).map(address).collect();
        let drives = mode == Mode::ZeroCopy && queues.iter().all(Queue::prefers_polling);
        Ok(XdpIo {
            _attached: attached,
            queues,
            side: Box::new(PacketIo::open(interface, function)?),
            umem,
            free,
            mode,
            own: interface.mac,
            frame_bytes: interface.mtu,
            staged: false,
            drives,
            counters: IoCounters::default(),
            life: Arc::default(),
        })
    }

    /// How frames get into and out of our memory.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Alive as long as this exists.
    pub(crate) fn life(&self) -> Weak<()> {
        Arc::downgrade(&self.life)
    }

    /// Takes back the chunks of sent frames.
    fn reclaim(&mut self) {
        let ring = &mut self.queues[0].sent;
        let before = self.free.len();
        while let Some(address) = ring.front() {
            self.free.push(self.umem.chunk_of(address));
            ring.consume();
        }
        if self.free.len() > before {
            ring.publish_consumed();
        }
    }

    /// Tells the kernel that there is something to send. Each call sends a few dozen frames.
    fn kick(&mut self) -> bool {
        let queue = &self.queues[0];
        for _ in 0..RING_ENTRIES {
            if queue.send.is_consumed() || !queue.send.needs_wakeup() {
                return true;
            }
            self.counters.send_calls += 1;
            match socket::send(queue.socket.as_fd(), &[]) {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) || is_for_later(&error) => {
                    // EAGAIN also means that this call has sent its share.
                    if error.raw_os_error() != Some(libc::EAGAIN) {
                        self.counters.send_full += 1;
                        return false;
                    }
                }
                Err(_) => {
                    self.counters.send_failed += 1;
                    return true;
                }
            }
        }
        false
    }
}

impl Queue {
    fn open(
        umem: &Umem,
        interface: u32,
        number: u32,
        first: Option<BorrowedFd<'_>>,
        mode: Mode,
    ) -> io::Result<Queue> {
        let socket = socket::open(libc::AF_XDP, libc::SOCK_RAW, 0)?;
        let fd = socket.as_fd();
        if first.is_none() {
            socket::set(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &umem.registration())?;
        }
        for ring in [
            libc::XDP_UMEM_FILL_RING,
            libc::XDP_UMEM_COMPLETION_RING,
            libc::XDP_RX_RING,
            libc::XDP_TX_RING,
        ] {
            socket::set(fd, libc::SOL_XDP, ring, &RING_ENTRIES)?;
        }
        let none = || libc::xdp_ring_offset { producer: 0, consumer: 0, desc: 0, flags: 0 };
        let offsets = libc::xdp_mmap_offsets { rx: none(), tx: none(), fr: none(), cr: none() };
        let offsets = socket::query(fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, offsets)?;
        let received = Ring::map(fd, offsets.rx, RING_ENTRIES, libc::XDP_PGOFF_RX_RING as u64)?;
        let send = Ring::map(fd, offsets.tx, RING_ENTRIES, libc::XDP_PGOFF_TX_RING as u64)?;
        let fill = Ring::map(fd, offsets.fr, RING_ENTRIES, libc::XDP_UMEM_PGOFF_FILL_RING)?;
        let sent = Ring::map(fd, offsets.cr, RING_ENTRIES, libc::XDP_UMEM_PGOFF_COMPLETION_RING)?;
        // SAFETY: zeros are a valid address.
        let mut address: libc::sockaddr_xdp = unsafe { std::mem::zeroed() };
        address.sxdp_family = libc::AF_XDP as u16;
        address.sxdp_ifindex = interface;
        address.sxdp_queue_id = number;
        match first {
            // All queues share the memory and the mode of the first one.
            Some(first) => {
                address.sxdp_flags = libc::XDP_SHARED_UMEM;
                address.sxdp_shared_umem_fd = first.as_raw_fd() as u32;
            }
            None => {
                let how = if mode == Mode::ZeroCopy { libc::XDP_ZEROCOPY } else { libc::XDP_COPY };
                address.sxdp_flags = how | libc::XDP_USE_NEED_WAKEUP;
            }
        }
        socket::bind(fd, &address, size_of::<libc::sockaddr_xdp>())?;
        Ok(Queue { received, fill, sent, send, socket })
    }

    /// Asks the kernel to prefer our polling to the card's interrupts.
    fn prefers_polling(&self) -> bool {
        const BUSY_POLL_US: i32 = 20;
        const BUSY_POLL_FRAMES: i32 = 64;
        let set = |name, value: i32| {
            socket::set(self.socket.as_fd(), libc::SOL_SOCKET, name, &value).is_ok()
        };
        set(libc::SO_PREFER_BUSY_POLL, 1)
            && set(libc::SO_BUSY_POLL, BUSY_POLL_US)
            && set(libc::SO_BUSY_POLL_BUDGET, BUSY_POLL_FRAMES)
    }

    /// Makes the kernel poll the card now.
    fn look(&self) {
        // SAFETY: receives nothing into nothing. For these sockets the call polls the queue.
        unsafe {
            let (fd, flags) = (self.socket.as_raw_fd(), libc::MSG_DONTWAIT);
            libc::recv(fd, std::ptr::null_mut(), 0, flags);
        }
    }
}

impl FrameIo for XdpIo {
    type Path = Mac;

    const LINK_TYPE: LinkType = LinkType::Ethernet;

    fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    #[inline]
    fn room(&mut self) -> Option<&mut [u8]> {
        if self.free.is_empty() {
            self.flush();
            self.reclaim();
        }
        let address = *self.free.last()?;
        let bytes = self.umem.bytes_mut(address, LINK_HEADER_BYTES + self.frame_bytes);
        Some(&mut bytes[LINK_HEADER_BYTES..])
    }

    #[inline]
    fn stage(&mut self, to: Mac, length: usize) {
        let address = self.free.pop().expect("the chunk that `room` gave");
        let length = LINK_HEADER_BYTES + length;
        link_header::emit(self.umem.bytes_mut(address, length), to, self.own);
        let frame = libc::xdp_desc { addr: address, len: length as u32, options: 0 };
        // There are as many chunks for sending as entries.
        assert!(self.queues[0].send.produce(frame), "a chunk for each entry");
        self.staged = true;
        self.counters.frames_sent += 1;
        self.counters.bytes_sent += (length - LINK_HEADER_BYTES) as u64;
        self.counters.copies += u64::from(self.mode != Mode::ZeroCopy);
    }

    #[inline]
    fn flush(&mut self) -> bool {
        if !self.staged {
            return true;
        }
        self.queues[0].send.publish_produced();
        let done = self.kick();
        self.staged = !done;
        // At once, so that the same few chunks, which are in the cache, are used again.
        self.reclaim();
        done
    }

    #[inline]
    fn receive(&mut self, budget: usize, mut take: impl FnMut(Mac, &[u8])) -> usize {
        let mut frames = 0;
        for queue in &mut self.queues {
            let before = frames;
            while frames < budget {
                // A waiting frame is taken as it is; the card is asked only when there is none
                // (H-09).
                let Some(found) = queue.received.front() else { break };
                let bytes = self.umem.bytes(found.addr, found.len as usize).unwrap_or(&[]);
                memory::fetch(bytes);
                if let Some((_, from, bytes)) = link_header::parse(bytes) {
                    self.counters.bytes_received += bytes.len() as u64;
                    frames += 1;
                    take(from, bytes);
                }
                queue.received.consume();
                // The ring has an entry for each chunk of this queue.
                let _ = queue.fill.produce(self.umem.chunk_of(found.addr));
            }
            if frames > before {
                queue.received.publish_consumed();
                queue.fill.publish_produced();
            } else if self.drives || queue.fill.needs_wakeup() {
                self.counters.receive_calls += 1;
                queue.look();
            }
        }
        self.counters.frames_received += frames as u64;
        self.counters.copies += if self.mode == Mode::ZeroCopy { 0 } else { frames as u64 };
        if frames == 0 {
            let past = &mut self.counters.frames_past_xdp;
            frames = self.side.receive(budget, |from, bytes| {
                let function = bytes.get(FUNCTION_OFFSET - LINK_HEADER_BYTES);
                *past += u64::from(function != Some(&EVERY_FUNCTION));
                take(from, bytes);
            });
        }
        frames
    }

    fn wait_fds(&self) -> Vec<BorrowedFd<'_>> {
        let sockets = self.queues.iter().map(|queue| queue.socket.as_fd());
        sockets.chain(self.side.wait_fds()).collect()
    }

    fn generation(&self) -> Option<u64> {
        Some(0)
    }

    fn is_ready(&self) -> bool {
        self.queues.iter().any(|queue| queue.received.has_front()) || self.side.is_ready()
    }

    fn capture_header(&self, peer: Mac, direction: Direction, _: &[u8]) -> Vec<u8> {
        link_header::capture(self.own, peer, direction)
    }

    fn counters(&self) -> IoCounters {
        let side = self.side.counters();
        let mut counters = self.counters;
        counters.frames_received += side.frames_received;
        counters.bytes_received += side.bytes_received;
        counters.copies += side.copies;
        let empty = libc::xdp_statistics {
            rx_dropped: 0,
            rx_invalid_descs: 0,
            tx_invalid_descs: 0,
            rx_ring_full: 0,
            rx_fill_ring_empty_descs: 0,
            tx_ring_empty_descs: 0,
        };
        for queue in &self.queues {
            let fd = queue.socket.as_fd();
            if let Ok(told) = socket::query(fd, libc::SOL_XDP, libc::XDP_STATISTICS, empty) {
                counters.receive_lost += told.rx_dropped + told.rx_ring_full;
            }
        }
        counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{enter_new_namespace, ip};
    use std::sync::mpsc::channel;
    use std::time::Instant;

    /// The two ends of a cable, in a namespace of this thread's own.
    fn wired() -> [Interface; 2] {
        enter_new_namespace()
            .and_then(|()| {
                ip("link add wire0 type veth peer name wire1\nlink set wire0 up\nlink set wire1 up")
            })
            .expect("NOT RUN: making a network namespace needs root, and ip of iproute2");
        ["wire0", "wire1"].map(|name| Interface::find(name).expect("just made"))
    }

    /// A queue that is still busy without an attached program is retried. If its owner has the
    /// hook, opening fails.
    #[test]
    fn a_queue_that_is_let_go_is_waited_for() {
        enter_new_namespace()
            .and_then(|()| ip("link add wire0 type veth peer name wire1\nlink set wire0 up"))
            .expect("NOT RUN: making a network namespace needs root, and ip of iproute2");
        let interface = Interface::find("wire0").expect("it was just made");
        let umem = Umem::new(umem::chunk_bytes(1514).expect("short frames"), 64).expect("memory");
        let before = Queue::open(&umem, interface.index, 0, None, Mode::Generic).expect("a queue");
        let busy = Queue::open(&umem, interface.index, 0, None, Mode::Generic).err();
        assert_eq!(busy.and_then(|error| error.raw_os_error()), Some(libc::EBUSY));
        let (told, asked) = channel();
        let owner = std::thread::spawn(move || {
            asked.recv().expect("the other thread lives");
            std::thread::sleep(Duration::from_millis(300));
            drop((before, umem));
        });
        told.send(()).expect("the other thread lives");
        let opened = XdpIo::open(&interface, 0, Mode::Generic).expect("in a while");
        owner.join().expect("no panic");
        let refused = XdpIo::open(&interface, 1, Mode::Generic).err();
        assert_eq!(refused.and_then(|error| error.raw_os_error()), Some(libc::EBUSY));
        drop(opened);
        XdpIo::open(&interface, 1, Mode::Generic).expect("when the kernel has let go of it");
    }

    /// The hook is free when its owner closes, though a process that is just being started still
    /// has copies of the descriptors.
    #[test]
    fn copies_do_not_keep_the_hook() {
        enter_new_namespace()
            .and_then(|()| ip("link add copy0 type veth peer name copy1\nlink set copy0 up"))
            .expect("NOT RUN: making a network namespace needs root, and ip of iproute2");
        let interface = Interface::find("copy0").expect("it was just made");
        let attach = |function| Attached::attach(&interface, function, Mode::Generic.hook());
        let first = attach(0).expect("a free hook");
        let copies = first.copies().expect("copies");
        attach(1).map(drop).expect_err("it has an owner");
        drop(first);
        attach(1).map(drop).expect("free again");
        drop(copies);
    }

    /// Received frames are handed out where the kernel wrote them: each in a chunk of its own, with
    /// no copy in between.
    // shows: H-20, H-21
    #[test]
    fn frames_are_handed_out_of_the_shared_memory() {
        const FRAMES: usize = 100;
        let [near, far] = wired();
        let to = far.mac;
        let [mut near, mut far] = [near, far]
            .map(|interface| XdpIo::open(&interface, 1, Mode::Generic).expect("a queue"));
        let (mut places, mut sent, since) = (Vec::new(), 0, Instant::now());
        while places.len() < FRAMES {
            // Frames that an interface sends before it runs are lost, so more are sent than needed.
            if sent <= places.len() + 8
                && let Some(room) = near.room()
            {
                room[..500].fill(0);
                room[FUNCTION_OFFSET - LINK_HEADER_BYTES] = 1;
                near.stage(to, 500);
                near.flush();
                sent += 1;
            }
            far.receive(64, |_, frame| places.push(frame.as_ptr() as usize));
            assert!(since.elapsed() < Duration::from_secs(60), "{} frames", places.len());
            if since.elapsed() > Duration::from_secs(1) {
                sent = sent.min(places.len());
            }
        }
        assert_eq!(far.counters().frames_past_xdp, 0);
        assert_eq!(near.free.len(), RING_ENTRIES as usize, "all frames have left");
        let chunk = far.umem.chunk_bytes;
        let memory = far.umem.registration().addr as usize;
        let end = memory + chunk * far.umem.chunks;
        assert!(places.iter().all(|place| (memory..end).contains(place)), "{places:x?}");
        let chunks: std::collections::BTreeSet<_> =
            places.iter().take(FRAMES).map(|place| (place - memory) / chunk).collect();
        assert_eq!(chunks.len(), FRAMES, "a chunk for each frame");
        // The others are for sending.
        assert!(chunks.iter().all(|&chunk| chunk < RING_ENTRIES as usize), "{chunks:?}");
    }

    /// Frames of all lengths arrive whole and in order, more of them than rings have entries. Both
    /// sides count the same.
    #[test]
    fn frames_arrive_as_they_were_sent() {
        const COUNT: usize = 2500;
        let [near, far] = wired();
        let (from, to) = (near.mac, far.mac);
        let [mut near, mut far] = [near, far]
            .map(|interface| XdpIo::open(&interface, 1, Mode::Generic).expect("a queue"));
        let send = |near: &mut XdpIo, length: usize, what: u8| {
            let room = near.room().expect("room");
            room[..length].fill(what);
            room[FUNCTION_OFFSET - LINK_HEADER_BYTES] = 1;
            near.stage(to, length);
        };
        let since = Instant::now();
        while far.receive(64, |_, _| {}) == 0 {
            assert!(since.elapsed() < Duration::from_secs(8), "the wire stays dead");
            send(&mut near, 60, 0);
            near.flush();
        }
        while far.is_ready() {
            far.receive(64, |_, _| {});
        }
        let (before, heard) = (near.counters(), far.counters());
        assert_eq!((near.frame_bytes(), near.mode()), (1500, Mode::Generic));
        let lengths = [60, 61, 500, 1499, 1500, 1500, 64, 1000];
        let frame = |number: usize| (lengths[number % lengths.len()], number as u8);
        let mut sent = 0;
        for batch in [1, 2, 7, 25, 100, 1].into_iter().cycle() {
            let batch = batch.min(COUNT - sent);
            for number in sent..sent + batch {
                let (length, what) = frame(number);
                send(&mut near, length, what);
            }
            while !near.flush() {
                assert!(since.elapsed() < Duration::from_secs(8), "the kernel takes no more");
            }
            let mut got = Vec::new();
            while got.len() < batch {
                let budget = 1 + batch / 2;
                let frames = far.receive(budget, |who, bytes| {
                    assert_eq!((who, bytes[FUNCTION_OFFSET - LINK_HEADER_BYTES]), (from, 1));
                    got.push((bytes.len(), *bytes.last().expect("a byte")));
                });
                assert!(frames <= budget);
                assert!(since.elapsed() < Duration::from_secs(8), "{} of {batch}", got.len());
            }
            assert_eq!(got, (sent..sent + batch).map(frame).collect::<Vec<_>>());
            sent += batch;
            if sent == COUNT {
                break;
            }
        }
        let bytes = (0..COUNT).map(|number| frame(number).0 as u64).sum::<u64>();
        let (sent, got) = (near.counters(), far.counters());
        assert_eq!(sent.frames_sent - before.frames_sent, COUNT as u64);
        assert!(sent.send_calls > before.send_calls);
        assert_eq!(sent.copies - before.copies, COUNT as u64);
        assert_eq!(sent.bytes_sent - before.bytes_sent, bytes);
        assert_eq!(got.frames_received - heard.frames_received, COUNT as u64);
        assert_eq!(got.copies - heard.copies, COUNT as u64);
        assert_eq!(got.bytes_received - heard.bytes_received, bytes);
        assert_eq!((got.receive_lost, sent.send_failed, got.frames_past_xdp), (0, 0, 0));
        assert!(!far.is_ready());
    }

    /// Frames beyond what the rings hold are lost, and that is counted.
    #[test]
    fn full_rings_lose_frames_and_count_them() {
        let [near, far] = wired();
        let to = far.mac;
        let [mut near, far] = [near, far]
            .map(|interface| XdpIo::open(&interface, 1, Mode::Generic).expect("a queue"));
        let since = Instant::now();
        while far.counters().receive_lost == 0 {
            assert!(since.elapsed() < Duration::from_secs(8), "nothing is lost");
            for _ in 0..256 {
                let Some(room) = near.room() else { break };
                room[..60].fill(0);
                room[FUNCTION_OFFSET - LINK_HEADER_BYTES] = 1;
                near.stage(to, 60);
                near.flush();
            }
        }
    }

    /// The program is at the hook that was asked for, and at no other.
    #[test]
    fn the_hook_is_the_one_that_was_asked_for() {
        enter_new_namespace()
            .and_then(|()| ip("link add wire0 type veth peer name wire1"))
            .expect("NOT RUN: making a network namespace needs root, and ip of iproute2");
        let wire = Interface::find("wire0").expect("it was just made");
        // The loopback, whose driver has no hook, is the first of a namespace.
        let loopback =
            Interface { index: 1, ..Interface::find("wire0").expect("it was just made") };
        for hook in [Hook::Generic, Hook::Driver] {
            let _attached = Attached::attach(&wire, 0, hook).expect("a free hook");
            let shown = std::process::Command::new("ip").args(["link", "show", "wire0"]).output();
            let shown = String::from_utf8(shown.expect("ip").stdout).expect("text");
            assert_eq!(shown.contains("xdpgeneric"), hook == Hook::Generic, "{shown}");
        }
        Attached::attach(&loopback, 0, Hook::Driver).map(drop).expect_err("no hook");
        Attached::attach(&loopback, 0, Hook::Generic).expect("the link layer's");
    }

    /// An interface whose frames do not fit in a page has no AF_XDP. Each mode has its name and
    /// its hook.
    #[test]
    fn modes_and_frames_that_fit() {
        enter_new_namespace()
            .and_then(|()| ip("link add wire0 mtu 9000 type veth peer name wire1"))
            .expect("NOT RUN: making a network namespace needs root, and ip of iproute2");
        let interface = Interface::find("wire0").expect("it was just made");
        let refused = XdpIo::open(&interface, 1, Mode::Generic).err().expect("too long");
        assert_eq!(refused.kind(), io::ErrorKind::Unsupported);
        // The link's header is part of what has to fit.
        let longest = |bytes: usize| umem::chunk_bytes(bytes + LINK_HEADER_BYTES);
        let mtu = (1500..2048).find(|&mtu| longest(mtu) != longest(1500)).expect("a longer chunk");
        ip(&format!("link set wire0 mtu {mtu}")).expect("it can change");
        let interface = Interface::find("wire0").expect("it was just made");
        let opened = XdpIo::open(&interface, 1, Mode::Generic).expect("a queue");
        assert_eq!(Some(opened.umem.chunk_bytes), longest(mtu));
        drop(opened);
        // Each of two queues has as many chunks to receive as there are to send.
        ip("link add many0 numrxqueues 2 numtxqueues 2 type veth peer name many1").expect("a wire");
        let interface = Interface::find("many0").expect("it was just made");
        assert_eq!(interface.queues, 2);
        let opened = XdpIo::open(&interface, 1, Mode::Generic).expect("two queues");
        let to_send = (2048..3072).map(|chunk| chunk * opened.umem.chunk_bytes as u64);
        assert!(opened.free.iter().copied().eq(to_send), "{:?}", opened.free);
        drop(opened);
        let all = [Mode::ZeroCopy, Mode::Native, Mode::Generic];
        assert_eq!(all.map(Mode::hook), [Hook::Driver, Hook::Driver, Hook::Generic]);
        assert_eq!(all.map(Mode::name), ["zero-copy", "native (one copy)", "generic (one copy)"]);
    }

    /// Frames that the program leaves to the kernel are received beside it, and those for this
    /// function alone are counted as such. What an interface refuses that is down counts as failed.
    #[test]
    fn frames_beside_the_program_are_received() {
        const AT: usize = FUNCTION_OFFSET - LINK_HEADER_BYTES;
        let [near, far] = wired();
        let (own, old) = (near.mac, far.mac);
        let [mut near, mut far] = [near, far]
            .map(|interface| XdpIo::open(&interface, 1, Mode::Generic).expect("a queue"));
        for direction in [Direction::Sent, Direction::Received] {
            let header = near.capture_header(old, direction, &[]);
            assert_eq!(header, link_header::capture(own, old, direction));
        }
        ip("link set wire1 address 02:00:00:00:00:77").expect("it can change while it is up");
        let new = Mac([2, 0, 0, 0, 0, 0x77]);
        let send = |near: &mut XdpIo, function: u8| {
            let room = near.room().expect("room");
            room[..60].fill(0xee);
            room[AT] = function;
            near.stage(new, 60);
            near.flush()
        };
        let since = Instant::now();
        while far.receive(64, |_, _| {}) == 0 {
            assert!(since.elapsed() < Duration::from_secs(8), "the wire stays dead");
            send(&mut near, 1);
        }
        while far.is_ready() {
            far.receive(64, |_, _| {});
        }
        let before = far.counters();
        for (count, function) in [(1, 1), (2, 1), (2, EVERY_FUNCTION), (3, 1)] {
            assert!(!far.is_ready());
            let past = far.counters().frames_past_xdp;
            send(&mut near, function);
            while !far.is_ready() {
                assert!(since.elapsed() < Duration::from_secs(8), "nothing comes");
            }
            assert_eq!(
                far.receive(64, |from, bytes| assert_eq!((from, bytes[AT]), (own, function))),
                1
            );
            let passed = far.counters().frames_past_xdp - past;
            assert_eq!(passed, u64::from(function == 1), "frame {count}");
        }
        let counters = far.counters();
        assert_eq!(counters.frames_received - before.frames_received, 4);
        assert_eq!(counters.copies - before.copies, 4);
        assert_eq!(counters.bytes_received - before.bytes_received, 240);
        ip("link set wire0 down").expect("it goes down");
        let before = near.counters();
        assert!(send(&mut near, 1));
        let after = near.counters();
        assert_eq!(after.send_failed - before.send_failed, 1, "{after:?}");
        assert_eq!(after.send_full, before.send_full);
    }
}
