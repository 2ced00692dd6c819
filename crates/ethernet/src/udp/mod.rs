//! Frames inside UDP datagrams: no privileges, any route.
//!
//! Each function has one socket, and one more for the busiest peer (`connected_socket.rs`). A
//! batch leaves with one `sendmmsg`. Equally long frames to one peer leave as one segmented
//! datagram (UDP_SEGMENT), which passes the kernel's stack once. On the way in UDP_GRO does the
//! same. IP never fragments these datagrams: a lost fragment would lose the whole datagram. So a
//! frame is at most what the route carries.

mod address;
mod connected_socket;
mod reports;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod thief;

use crate::batch::{BATCH_FRAMES, Batch, Staged};
use crate::frame_io::{FrameIo, IoCounters, is_for_later};
use crate::pcapng::{Direction, LinkType};
use crate::socket::{self, Name};
use address::{from_native, headers, to_native};
use bellwire_wire::frame::FRAME_OVERHEAD_BYTES;
use bellwire_wire::frame::header::FrameHeader;
use bellwire_wire::frame::keyed::KeyedHeader;
use connected_socket::{Change, ConnectedSocket};
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Bytes of IPv4 and UDP headers, and of IPv6 and UDP.
const HEADERS: (usize, usize) = (20 + 8, 40 + 8);

/// Longest payload of an IP datagram, whatever the interface carries.
const LONGEST: usize = 65_535 - 40 - 8;

/// Requested size of the socket buffers, in bytes: what may arrive while the program is busy.
const SOCKET_BYTES: i32 = 4 << 20;

/// Maximum number of datagrams of one receiving call.
const RECEIVE_DATAGRAMS: usize = 16;
/// Size of the buffer of a received datagram: the largest that there is.
const BUFFER_BYTES: usize = 1 << 16;
/// While only the connected peer sends, one of this many polls reads the common socket.
const OTHERS_POLLS: u32 = 16;

/// Bytes of a control message that carries one integer.
const CONTROL_BYTES: usize = 64;

/// UDP of one function.
pub struct UdpIo {
    socket: OwnedFd,
    _name: Name,
    connected: ConnectedSocket,
    /// How often that changed.
    changes: u64,
    address: SocketAddr,
    frame_bytes: usize,
    /// With more bytes than this in the batch, another frame may not fit their datagram. Without a
    /// limit if a datagram holds only one frame.
    full_bytes: usize,
    /// The kernel cuts one long datagram into frames. False once the kernel has refused.
    segments: bool,
    batch: Batch<SocketAddr>,
    incoming: Incoming,
    /// Places where nobody receives any more.
    refused: Vec<SocketAddr>,
    counters: IoCounters,
}

/// Places where nobody receives that are remembered until the protocol takes them.
const REFUSED: usize = 64;

/// Where received datagrams go, and how many are asked for.
struct Incoming {
    /// [`RECEIVE_DATAGRAMS`] buffers of [`BUFFER_BYTES`].
    buffers: Box<[u8]>,
    /// The kernel may coalesce several frames into one datagram.
    coalesces: bool,
    /// Datagrams that the next receive asks for: at the common socket, and at the connected one.
    ask: [usize; 2],
    /// Polls until the common socket is read again.
    turn: u32,
}

impl UdpIo {
    /// Opens a socket at `address`. `mtu`: what the interface carries, in bytes.
    ///
    /// # Errors
    /// What the kernel says: the address is taken by another process, or is not one of this host.
    pub fn open(address: SocketAddr, mtu: usize) -> io::Result<UdpIo> {
        let domain = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let socket = socket::open(domain, libc::SOCK_DGRAM, 0)?;
        let (native, length) = to_native(address);
        let coalesces = prepare(socket.as_fd(), address)?;
        reports::ask(socket.as_fd(), address)?;
        let name = socket::bind_anew(socket.as_fd(), &native, length)?;
        let headers = if address.is_ipv4() { HEADERS.0 } else { HEADERS.1 };
        let frame_bytes = mtu.saturating_sub(headers).clamp(1024, LONGEST);
        let buffers = vec![0; RECEIVE_DATAGRAMS * BUFFER_BYTES].into_boxed_slice();
        Ok(UdpIo {
            socket,
            _name: name,
            connected: ConnectedSocket::new(),
            changes: 0,
            address,
            frame_bytes,
            full_bytes: if 2 * frame_bytes > LONGEST { usize::MAX } else { LONGEST - frame_bytes },
            segments: !bellwire_ring::canary::planted("udp-one-by-one"),
            batch: Batch::new(frame_bytes),
            incoming: Incoming { buffers, coalesces, ask: [1; 2], turn: 0 },
            refused: Vec::new(),
            counters: IoCounters { segments_refused: u64::from(!coalesces), ..Default::default() },
        })
    }

    /// The address that peers send to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sends as much of the batch as the kernel takes.
    fn send_batch(&mut self) -> bool {
        while !self.batch.is_empty() {
            let sent = match self.batch.frames().len() {
                1 => self.send_one(),
                _ => self.send_runs(),
            };
            match sent {
                Ok(frames) => {
                    for frame in self.batch.frames().iter().take(frames) {
                        self.counters.bytes_sent += frame.length as u64;
                    }
                    self.counters.frames_sent += frames as u64;
                    self.counters.copies += frames as u64;
                    self.batch.remove(frames);
                }
                Err(error) if is_for_later(&error) => {
                    self.counters.send_full += 1;
                    return false;
                }
                // The connected socket reports an earlier refusal, once; the kernel did not try
                // this frame.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    let to = self.batch.frames()[0].to;
                    if self.connected.socket_to(to).is_some() {
                        self.note_refusal(to);
                    }
                    self.read_reports();
                }
                Err(error)
                    if self.segments
                        && self.batch.frames().len() > 1
                        && matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EIO)) =>
                {
                    // This route cannot segment: send frames one by one from now on.
                    self.segments = false;
                    self.counters.segments_refused += 1;
                }
                // The common socket reports what became of an earlier frame.
                Err(_) if self.read_reports() > 0 => {}
                Err(_) => {
                    // The frame counts as lost: the protocol retransmits it or gives the peer up.
                    self.counters.send_failed += 1;
                    self.batch.remove(1);
                }
            }
        }
        true
    }

    fn note_refusal(&mut self, place: SocketAddr) {
        if self.refused.len() < REFUSED && !self.refused.contains(&place) {
            self.refused.push(place);
        }
    }

    /// Takes the kernel's reports about earlier frames of the common socket. Returns how many hosts
    /// had sent.
    #[cold]
    fn read_reports(&mut self) -> usize {
        let mut count = 0;
        while let Some(report) = reports::next(self.socket.as_fd()) {
            count += usize::from(report.is_from_host);
            if let Some(place) = report.refused {
                self.note_refusal(place);
            }
        }
        count
    }

    fn send_one(&mut self) -> io::Result<usize> {
        let Staged { to, start, length } = self.batch.frames()[0];
        let bytes = self.batch.bytes(start, length);
        self.counters.send_calls += 1;
        if let Some(socket) = self.connected.socket_to(to) {
            return socket::send(socket, bytes).map(|_| 1);
        }
        let (native, native_length) = to_native(to);
        socket::send_to(self.socket.as_fd(), bytes, &native, native_length).map(|_| 1)
    }

    /// Sends all runs by one call; returns how many frames left.
    fn send_runs(&mut self) -> io::Result<usize> {
        let mut runs = [const { MaybeUninit::<Run>::uninit() }; BATCH_FRAMES];
        let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCH_FRAMES];
        let mut count = 0;
        let mut next = 0;
        let first = self.batch.frames()[0].to;
        let direct = self
            .connected
            .socket_to(first)
            .filter(|_| self.batch.frames().iter().all(|frame| frame.to == first));
        while next < self.batch.frames().len() {
            let run = runs[count].write(self.run(next));
            next += run.frames;
            let segment = (run.frames > 1).then_some(run.segment as u16);
            run.data = libc::iovec {
                iov_base: self.batch.bytes(run.start, run.length).as_ptr().cast_mut().cast(),
                iov_len: run.length,
            };
            let mut header = empty_header();
            if direct.is_none() {
                header.msg_name = (&raw mut run.native).cast();
                header.msg_namelen = run.native_length as u32;
            }
            header.msg_iov = &raw mut run.data;
            header.msg_iovlen = 1;
            if let Some(segment) = segment {
                header.msg_control = run.control.0.as_mut_ptr().cast();
                header.msg_controllen = write_segment(&mut run.control, segment);
            }
            headers[count].write(libc::mmsghdr { msg_hdr: header, msg_len: 0 });
            count += 1;
        }
        self.counters.send_calls += 1;
        // SAFETY: the first `count` headers were written, and point to runs that live until the end
        // of this function.
        let sent = unsafe {
            let socket = direct.unwrap_or(self.socket.as_fd());
            socket::send_many(socket, headers.as_mut_ptr().cast(), count)?
        };
        // SAFETY: `sent` is at most `count`.
        let frames = runs[..sent].iter().map(|run| unsafe { run.assume_init_ref() }.frames);
        let (mut all, mut segmented) = (0, 0);
        for frames in frames {
            all += frames;
            segmented += if frames > 1 { frames } else { 0 };
        }
        self.counters.frames_segmented += segmented as u64;
        Ok(all)
    }

    /// The frames from `first` on that can be one segmented datagram: to one peer, and of one
    /// length except for the last, which may be shorter.
    fn run(&self, first: usize) -> Run {
        let frames = self.batch.frames();
        let Staged { to, start, length: segment } = frames[first];
        let mut length = segment;
        let mut count = 1;
        if self.segments {
            for frame in frames.iter().skip(first + 1) {
                let fits = frame.to == to
                    && frame.length <= segment
                    && length == count * segment
                    && length + frame.length <= LONGEST;
                if !fits {
                    break;
                }
                length += frame.length;
                count += 1;
            }
        }
        let (native, native_length) = to_native(to);
        Run {
            frames: count,
            start,
            length,
            segment,
            native,
            native_length,
            data: libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 },
            control: Control([0; CONTROL_BYTES]),
        }
    }

    /// Receives from the common socket, and may connect the other one to a sender.
    fn receive_common(&mut self, take: &mut impl FnMut(SocketAddr, &[u8])) -> usize {
        let incoming = &mut self.incoming;
        let ask = incoming.ask[0];
        let mut received = [const { MaybeUninit::<Received>::uninit() }; RECEIVE_DATAGRAMS];
        let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; RECEIVE_DATAGRAMS];
        for (number, buffer) in incoming.buffers.chunks_mut(BUFFER_BYTES).take(ask).enumerate() {
            let slot = received[number].write(Received::new(buffer));
            let mut header = slot.header(incoming.coalesces);
            header.msg_name = slot.native.as_mut_ptr().cast();
            header.msg_namelen = size_of::<libc::sockaddr_storage>() as u32;
            headers[number].write(libc::mmsghdr { msg_hdr: header, msg_len: 0 });
        }
        self.counters.receive_calls += 1;
        // SAFETY: the first `ask` headers were written; each points to its slot and to a buffer,
        // which the kernel writes.
        let result = unsafe {
            libc::recvmmsg(
                self.socket.as_raw_fd(),
                headers.as_mut_ptr().cast(),
                ask as u32,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        if result < 0 && !is_for_later(&io::Error::last_os_error()) {
            self.read_reports();
            return 0;
        }
        let datagrams = result.max(0) as usize;
        incoming.ask[0] = next_ask(ask, datagrams);
        let mut frames = 0;
        let mut change = Change::Keep;
        for number in 0..datagrams {
            // SAFETY: written above, and changed by the kernel in the way that recvmmsg(2) states.
            let (header, slot) =
                unsafe { (headers[number].assume_init_ref(), received[number].assume_init_ref()) };
            // SAFETY: the kernel wrote the sender's address there.
            let Some(from) = (unsafe { from_native(slot.native.assume_init_ref()) }) else {
                continue;
            };
            let length = BUFFER_BYTES.min(header.msg_len as usize);
            let bytes = &incoming.buffers[number * BUFFER_BYTES..][..length];
            let taken = slot.frames(bytes, &header.msg_hdr, &mut self.counters, from, take);
            frames += taken;
            if taken == 0 {
                continue;
            }
            match self.connected.heard_other(from) {
                Change::Keep => {}
                wanted => change = wanted,
            }
        }
        // A socket without a port only asks for nodes, and needs no other.
        if change != Change::Keep && self.address.port() != 0 {
            self.change_connected(change, take);
        }
        frames
    }

    /// Receives from the connected socket.
    #[inline]
    fn receive_connected(&mut self, take: &mut impl FnMut(SocketAddr, &[u8])) -> usize {
        let Some((socket, peer)) = self.connected.get() else { return 0 };
        let incoming = &mut self.incoming;
        let ask = incoming.ask[1];
        let (mut frames, mut datagrams) = (0, 0);
        while datagrams < ask {
            let buffer = &mut incoming.buffers[..BUFFER_BYTES];
            self.counters.receive_calls += 1;
            let length = match socket::receive(socket, buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    self.note_refusal(peer);
                    return frames;
                }
                Err(_) => break,
            };
            datagrams += 1;
            // The peer's frames say their length. To ask the kernel by a control message costs 120
            // ns more in each poll.
            let bytes = &buffer[..length];
            let first = length_of_frame(bytes).unwrap_or(length);
            let segment = (FRAME_OVERHEAD_BYTES..length).contains(&first).then_some(first);
            frames += split(bytes, segment, &mut self.counters, peer, take);
        }
        incoming.ask[1] = next_ask(ask, datagrams);
        self.connected.heard(datagrams);
        frames
    }

    /// Connects or closes the connected socket. Datagrams that it has are received first.
    #[cold]
    fn change_connected(&mut self, change: Change, take: &mut impl FnMut(SocketAddr, &[u8])) {
        // Bounded, because a fast sender could keep us here for ever. Lost frames are
        // retransmitted.
        for _ in 0..64 {
            if self.receive_connected(take) == 0 {
                break;
            }
        }
        self.changes += 1;
        match change {
            // If it fails, the common socket goes on as before.
            Change::Connect(peer) => {
                let _ = self.connected.connect(self.socket.as_fd(), self.address, peer);
            }
            Change::Keep | Change::Close => self.connected.close(),
        }
    }
}

impl FrameIo for UdpIo {
    type Path = SocketAddr;

    const LINK_TYPE: LinkType = LinkType::Ip;

    fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    #[inline]
    fn room(&mut self) -> Option<&mut [u8]> {
        // Frames beyond a full datagram would begin a short one. Once the kernel has taken the
        // whole batch, the batch has room again.
        let is_full = !self.batch.has_room() || self.batch.end() > self.full_bytes;
        if is_full && !self.send_batch() {
            return None;
        }
        Some(self.batch.room())
    }

    #[inline]
    fn stage(&mut self, to: SocketAddr, length: usize) {
        self.batch.stage(to, length);
    }

    #[inline]
    fn flush(&mut self) -> bool {
        self.batch.is_empty() || self.send_batch()
    }

    #[inline]
    fn receive(&mut self, _: usize, mut take: impl FnMut(SocketAddr, &[u8])) -> usize {
        let mut frames = self.receive_connected(&mut take);
        if self.incoming.turn > 0 {
            self.incoming.turn -= 1;
        } else {
            let others = self.receive_common(&mut take);
            // While other peers send, every poll reads the common socket.
            self.incoming.turn =
                if self.connected.is_open() && others == 0 { OTHERS_POLLS } else { 0 };
            frames += others;
        }
        self.counters.frames_received += frames as u64;
        self.counters.copies += frames as u64;
        frames
    }

    #[inline]
    fn take_refused(&mut self) -> Option<SocketAddr> {
        self.refused.pop()
    }

    fn wait_fds(&self) -> Vec<BorrowedFd<'_>> {
        let mut fds = vec![self.socket.as_fd()];
        fds.extend(self.connected.get().map(|(socket, _)| socket));
        fds
    }

    fn generation(&self) -> Option<u64> {
        Some(self.changes)
    }

    fn wake(&mut self, index: usize) {
        if index == 0 {
            self.incoming.turn = 0;
        }
    }

    fn is_ready(&self) -> bool {
        socket::is_one_readable(&self.wait_fds())
    }

    fn capture_header(&self, peer: SocketAddr, direction: Direction, frame: &[u8]) -> Vec<u8> {
        match direction {
            Direction::Sent => headers(self.address, peer, frame.len()),
            Direction::Received => headers(peer, self.address, frame.len()),
        }
    }

    fn counters(&self) -> IoCounters {
        self.counters
    }
}

/// Room for control messages, aligned as their headers want it.
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// One datagram of a sending call: a frame, or several that the kernel separates.
struct Run {
    frames: usize,
    start: usize,
    length: usize,
    segment: usize,
    native: libc::sockaddr_storage,
    native_length: usize,
    data: libc::iovec,
    control: Control,
}

/// Where a received datagram's address and control messages go.
struct Received {
    native: MaybeUninit<libc::sockaddr_storage>,
    data: libc::iovec,
    control: Control,
}

impl Received {
    fn new(buffer: &mut [u8]) -> Received {
        Received {
            native: MaybeUninit::uninit(),
            data: libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() },
            control: Control([0; CONTROL_BYTES]),
        }
    }

    /// A message header that leads here, so that `self` must stay in its place. `coalesces`: with
    /// room for control messages.
    #[inline]
    fn header(&mut self, coalesces: bool) -> libc::msghdr {
        let mut header = empty_header();
        header.msg_iov = &raw mut self.data;
        header.msg_iovlen = 1;
        if coalesces {
            header.msg_control = self.control.0.as_mut_ptr().cast();
            header.msg_controllen = CONTROL_BYTES;
        }
        header
    }

    /// Hands the frames of a received datagram to `take`. Returns their number; 0: the datagram was
    /// cut, or is empty.
    #[inline]
    fn frames(
        &self,
        bytes: &[u8],
        message: &libc::msghdr,
        counters: &mut IoCounters,
        from: SocketAddr,
        take: &mut impl FnMut(SocketAddr, &[u8]),
    ) -> usize {
        if message.msg_flags & libc::MSG_TRUNC != 0 {
            counters.receive_lost += 1;
            return 0;
        }
        split(bytes, read_segment(message, self), counters, from, take)
    }
}

/// The length of the first of some frames, sealed or not.
#[inline]
fn length_of_frame(bytes: &[u8]) -> Option<usize> {
    match FrameHeader::parse(bytes) {
        Ok(header) => Some(header.length.into()),
        Err(_) => KeyedHeader::parse(bytes).ok().map(|header| header.length.into()),
    }
}

/// Hands the frames of a datagram to `take`: one, or several of `segment` bytes, of which the last
/// may be shorter. Returns their number; 0: the datagram is empty.
#[inline]
fn split(
    bytes: &[u8],
    segment: Option<usize>,
    counters: &mut IoCounters,
    from: SocketAddr,
    take: &mut impl FnMut(SocketAddr, &[u8]),
) -> usize {
    if bytes.is_empty() {
        counters.receive_lost += 1;
        return 0;
    }
    counters.bytes_received += bytes.len() as u64;
    let frames = bytes.chunks(segment.unwrap_or(bytes.len()));
    let count = frames.len();
    counters.frames_coalesced += if segment.is_some() { count as u64 } else { 0 };
    frames.for_each(|frame| take(from, frame));
    count
}

/// Sets a new socket up. Returns whether the kernel may coalesce received frames.
fn prepare(socket: BorrowedFd<'_>, address: SocketAddr) -> io::Result<bool> {
    if address.is_ipv6() {
        socket::set(socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, &1i32)?;
    }
    // Fragmentation multiplies the loss of datagrams: forbid it, and ignore what routers say about
    // the path MTU.
    let (level, name, probe) = match address {
        SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE),
        SocketAddr::V6(_) => {
            (libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)
        }
    };
    socket::set(socket, level, name, &probe)?;
    socket::enlarge_buffers(socket, SOCKET_BYTES);
    Ok(socket::set(socket, libc::SOL_UDP, libc::UDP_GRO, &1i32).is_ok())
}

/// How many datagrams to ask for after `got` of `asked`. A quiet line needs few: asking for more
/// costs time.
fn next_ask(asked: usize, got: usize) -> usize {
    if got == asked { (2 * asked).min(RECEIVE_DATAGRAMS) } else { got.max(1) }
}

fn empty_header() -> libc::msghdr {
    // SAFETY: null pointers and zero lengths are a valid message header.
    unsafe { std::mem::zeroed() }
}

/// Writes the request to cut the datagram into segments of `segment` bytes. Returns the length of
/// the control messages.
fn write_segment(control: &mut Control, segment: u16) -> usize {
    // SAFETY: the buffer has room for one header and an integer, and is aligned for them; CMSG_*
    // only compute in it.
    unsafe {
        let header = control.0.as_mut_ptr().cast::<libc::cmsghdr>();
        (*header).cmsg_level = libc::SOL_UDP;
        (*header).cmsg_type = libc::UDP_SEGMENT;
        (*header).cmsg_len = libc::CMSG_LEN(2) as usize;
        libc::CMSG_DATA(header).cast::<u16>().write_unaligned(segment);
        libc::CMSG_SPACE(2) as usize
    }
}

/// The length of the frames in a coalesced datagram; `None` if it was not coalesced.
fn read_segment(message: &libc::msghdr, slot: &Received) -> Option<usize> {
    let control = &slot.control.0[..message.msg_controllen.min(CONTROL_BYTES)];
    let header = size_of::<libc::cmsghdr>();
    let mut rest = control;
    while rest.len() >= header {
        // SAFETY: enough bytes are there, and all of them are a value of this plain structure.
        let found: libc::cmsghdr =
            unsafe { rest.as_ptr().cast::<libc::cmsghdr>().read_unaligned() };
        if found.cmsg_level == libc::SOL_UDP
            && found.cmsg_type == libc::UDP_GRO
            && let Some(bytes) = rest.get(header..header + 4)
        {
            let segment = i32::from_ne_bytes(bytes.try_into().expect("four bytes"));
            return usize::try_from(segment).ok().filter(|&segment| segment > 0);
        }
        let step = found.cmsg_len.max(header).next_multiple_of(size_of::<usize>());
        rest = rest.get(step..)?;
    }
    None
}
