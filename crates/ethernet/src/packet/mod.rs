//! Frames by AF_PACKET: any interface of any driver (H-01), jumbo frames included.
//!
//! The kernel writes received frames into a mapped ring. The ring is TPACKET_V2, because version 3
//! holds frames back until a timer fires. The frames come from the link layer, before any network
//! protocol (H-24). The kernel sends from our batch by `send` or `sendmmsg`; a mapped transmit ring
//! was measured to be slower. A filter in the kernel separates the functions, so that several
//! processes share an interface.

pub(crate) mod filter;
mod ring;

use crate::batch::{BATCH_FRAMES, Batch, Staged};
use crate::frame_io::{FrameIo, IoCounters, is_for_later};
use crate::interface::Interface;
use crate::link_header::{self, LINK_HEADER_BYTES, Mac};
use crate::memory;
use crate::pcapng::{Direction, LinkType};
use crate::socket;
use bellwire_ring::canary::planted;
use bellwire_wire::frame::ETHERTYPE;
use ring::Ring;
use std::io;
use std::mem::{MaybeUninit, size_of};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// AF_PACKET of one function.
pub struct PacketIo {
    socket: OwnedFd,
    ring: Ring,
    own: Mac,
    frame_bytes: usize,
    batch: Batch<()>,
    counters: IoCounters,
}

impl PacketIo {
    /// Opens `function` on `interface`.
    ///
    /// # Errors
    /// `PermissionDenied` without CAP_NET_RAW, or what else the kernel says.
    pub fn open(interface: &Interface, function: u8) -> io::Result<PacketIo> {
        // Protocol 0 until it is bound, so that nothing arrives before the filter is in place.
        let socket = socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
        Self::with_socket(socket, interface, function)
    }

    /// Like [`PacketIo::open`], over a packet socket that a privileged process handed in.
    ///
    /// # Errors
    /// What the kernel says, for instance if it is not a packet socket.
    pub fn with_socket(
        socket: OwnedFd,
        interface: &Interface,
        function: u8,
    ) -> io::Result<PacketIo> {
        let user = rustix::process::geteuid().as_raw();
        filter::attach(socket.as_fd(), interface.index, function, user)?;
        set_up(socket.as_fd());
        let io = Self::over(socket, interface)?;
        bind(io.socket.as_fd(), interface)?;
        Ok(io)
    }

    /// Frames of a socket that has its filter, and perhaps its binding.
    pub(crate) fn over(socket: OwnedFd, interface: &Interface) -> io::Result<PacketIo> {
        let ring = Ring::map(socket.as_fd(), interface.mtu + LINK_HEADER_BYTES)?;
        Ok(PacketIo {
            socket,
            ring,
            own: interface.mac,
            frame_bytes: interface.mtu,
            batch: Batch::new(LINK_HEADER_BYTES + interface.mtu),
            counters: IoCounters::default(),
        })
    }

    fn send_batch(&mut self) -> bool {
        while !self.batch.is_empty() {
            self.counters.send_calls += 1;
            let sent = match self.batch.frames().len() {
                1 => {
                    let Staged { start, length, .. } = self.batch.frames()[0];
                    let bytes = self.batch.bytes(start, length);
                    socket::send(self.socket.as_fd(), bytes).map(|_| 1)
                }
                _ => self.send_many(),
            };
            match sent {
                Ok(frames) => {
                    for frame in self.batch.frames().iter().take(frames) {
                        self.counters.bytes_sent += (frame.length - LINK_HEADER_BYTES) as u64;
                    }
                    self.counters.frames_sent += frames as u64;
                    self.counters.copies += frames as u64;
                    self.batch.remove(frames);
                }
                Err(error) if is_for_later(&error) => {
                    self.counters.send_full += 1;
                    return false;
                }
                Err(_) => {
                    // The interface is down, or its MTU has shrunk. The protocol treats the frame
                    // as lost.
                    self.counters.send_failed += 1;
                    self.batch.remove(1);
                }
            }
        }
        true
    }

    fn send_many(&self) -> io::Result<usize> {
        let mut data = [const { MaybeUninit::<libc::iovec>::uninit() }; BATCH_FRAMES];
        let mut headers = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; BATCH_FRAMES];
        let count = self.batch.frames().len();
        for (number, frame) in self.batch.frames().iter().enumerate() {
            let bytes = self.batch.bytes(frame.start, frame.length);
            let data = data[number].write(libc::iovec {
                iov_base: bytes.as_ptr().cast_mut().cast(),
                iov_len: bytes.len(),
            });
            // SAFETY: null pointers and zero lengths are a valid message header.
            let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
            header.msg_iov = data;
            header.msg_iovlen = 1;
            headers[number].write(libc::mmsghdr { msg_hdr: header, msg_len: 0 });
        }
        // SAFETY: the first `count` headers were written; all that they point to lives until the
        // end of this function.
        unsafe { socket::send_many(self.socket.as_fd(), headers.as_mut_ptr().cast(), count) }
    }
}

/// A packet socket for another process: for `function` of `interface`, on behalf of `user`. Its
/// filter is locked, and `mark` is on all that it sends.
pub(crate) fn socket_for(
    interface: &Interface,
    function: u8,
    user: u32,
    mark: u32,
) -> io::Result<OwnedFd> {
    let socket = socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
    let fd = socket.as_fd();
    filter::attach(fd, interface.index, function, user)?;
    if !planted(FILTER_UNLOCKED) {
        socket::set(fd, libc::SOL_SOCKET, libc::SO_LOCK_FILTER, &1i32)?;
    }
    if !planted(UNMARKED) {
        socket::set(fd, libc::SOL_SOCKET, libc::SO_MARK, &mark)?;
    }
    set_up(fd);
    bind(fd, interface)?;
    Ok(socket)
}

// Planted faults, for the canaries.
const FILTER_UNLOCKED: &str = "agent-filter-unlocked";
const UNMARKED: &str = "agent-unmarked";

/// Sets what nothing depends on.
fn set_up(fd: BorrowedFd<'_>) {
    // Ignores our own outgoing frames. Kernels without the option show these only to sockets of all
    // protocols.
    let _ = socket::set(fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1i32);
    socket::enlarge_buffers(fd, 4 << 20);
}

fn bind(fd: BorrowedFd<'_>, interface: &Interface) -> io::Result<()> {
    // SAFETY: zeros are a valid address.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    // Only our EtherType, so that frames of others do not even reach our filter (H-03).
    address.sll_protocol = ETHERTYPE.to_be();
    address.sll_ifindex = interface.index as i32;
    socket::bind(fd, &address, size_of::<libc::sockaddr_ll>())
}

impl FrameIo for PacketIo {
    type Path = Mac;

    const LINK_TYPE: LinkType = LinkType::Ethernet;

    fn frame_bytes(&self) -> usize {
        self.frame_bytes
    }

    #[inline]
    fn room(&mut self) -> Option<&mut [u8]> {
        // Once the kernel has taken the whole batch, the batch has room again.
        if !self.batch.has_room() && !self.send_batch() {
            return None;
        }
        Some(&mut self.batch.room()[LINK_HEADER_BYTES..])
    }

    #[inline]
    fn stage(&mut self, to: Mac, length: usize) {
        link_header::emit(self.batch.room(), to, self.own);
        self.batch.stage((), LINK_HEADER_BYTES + length);
    }

    #[inline]
    fn flush(&mut self) -> bool {
        self.batch.is_empty() || self.send_batch()
    }

    #[inline]
    fn receive(&mut self, budget: usize, mut take: impl FnMut(Mac, &[u8])) -> usize {
        let mut frames = 0;
        while frames < budget {
            let Some(slot) = self.ring.front() else { break };
            if slot.lost {
                self.counters.receive_lost += 1;
            }
            memory::fetch(slot.bytes);
            if let Some((_, from, bytes)) = link_header::parse(slot.bytes) {
                frames += 1;
                self.counters.bytes_received += bytes.len() as u64;
                take(from, bytes);
            }
            self.ring.release();
        }
        self.counters.frames_received += frames as u64;
        self.counters.copies += frames as u64;
        frames
    }

    fn wait_fds(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.socket.as_fd()]
    }

    fn generation(&self) -> Option<u64> {
        Some(0)
    }

    fn is_ready(&self) -> bool {
        self.ring.front().is_some()
    }

    fn capture_header(&self, peer: Mac, direction: Direction, _: &[u8]) -> Vec<u8> {
        link_header::capture(self.own, peer, direction)
    }

    fn counters(&self) -> IoCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link_header::FUNCTION_OFFSET;
    use crate::testing::{enter_new_namespace, ip, within_limit};
    use std::time::{Duration, Instant};

    const FUNCTION: u8 = 5;

    /// Both ends of a wire that carries `mtu` bytes, once frames pass it.
    fn pair(mtu: usize) -> [PacketIo; 2] {
        enter_new_namespace()
            .and_then(|()| {
                ip(&format!(
                    "link add near mtu {mtu} type veth peer name far mtu {mtu}\n\
                     link set near up\nlink set far up"
                ))
            })
            .expect("NOT RUN: making a network namespace needs root, and ip of iproute2");
        let [mut near, mut far] = ["near", "far"].map(|name| {
            let interface = Interface::find(name).expect("it was just made");
            assert_eq!((interface.mtu, interface.is_up), (mtu, true));
            PacketIo::open(&interface, FUNCTION).expect("a socket")
        });
        let since = Instant::now();
        while far.receive(64, |_, _| {}) == 0 {
            assert!(since.elapsed() < Duration::from_secs(8), "the wire stays dead");
            send(&mut near, &far, 60, 0);
            near.flush();
        }
        while far.is_ready() {
            far.receive(64, |_, _| {});
            assert!(since.elapsed() < Duration::from_secs(8), "it stays ready");
        }
        near.counters = IoCounters::default();
        far.counters = IoCounters::default();
        [near, far]
    }

    fn send(from: &mut PacketIo, to: &PacketIo, length: usize, what: u8) {
        let room = from.room().expect("room");
        room[..length].fill(what);
        room[FUNCTION_OFFSET - LINK_HEADER_BYTES] = FUNCTION;
        from.stage(to.own, length);
    }

    /// Receives `count` frames from `peer`, of at most `budget` at a time: their lengths, and the
    /// last byte of each.
    fn collect(io: &mut PacketIo, peer: Mac, count: usize, budget: usize) -> Vec<(usize, u8)> {
        let (since, mut got) = (Instant::now(), Vec::new());
        while got.len() < count {
            let before = got.len();
            let frames = io.receive(budget, |from, bytes| {
                assert_eq!((from, bytes[FUNCTION_OFFSET - LINK_HEADER_BYTES]), (peer, FUNCTION));
                got.push((bytes.len(), *bytes.last().expect("a byte")));
            });
            assert!(frames <= budget && frames == got.len() - before);
            assert!(since.elapsed() < Duration::from_secs(8), "{} of {count}", got.len());
        }
        got
    }

    /// Frames of all lengths arrive whole and in order, more of them than the ring has slots. Both
    /// sides count the same.
    // shows: H-01, H-20
    #[test]
    fn frames_arrive_as_they_were_sent() {
        // In a ring for 1,450 bytes, slots have 1,536, which just hold the link's header, too.
        // Slightly longer frames need the next larger slots.
        for (mtu, count) in [(1450, 20), (1470, 20), (1500, 3000), (9000, 400), (60_000, 100)] {
            let [mut near, mut far] = pair(mtu);
            assert_eq!(near.frame_bytes(), mtu);
            assert!(near.room().expect("room").len() >= mtu);
            assert!(near.flush() && !far.is_ready());
            assert_eq!(far.receive(64, |_, _| panic!("nothing was sent")), 0);
            let lengths = [60, 61, 500, mtu - 1, mtu, mtu, 64, 1000];
            let frame = |number: usize| (lengths[number % lengths.len()], number as u8);
            let (mut sent, mut calls) = (0, 0);
            for batch in [1, 2, 7, 25, 1].into_iter().cycle() {
                let batch = batch.min(count - sent);
                for number in sent..sent + batch {
                    let (length, what) = frame(number);
                    send(&mut near, &far, length, what);
                }
                assert!(near.flush());
                let got = collect(&mut far, near.own, batch, 3);
                assert_eq!(got, (sent..sent + batch).map(frame).collect::<Vec<_>>());
                sent += batch;
                calls += 1;
                if sent == count {
                    break;
                }
            }
            let bytes = (0..count).map(|number| frame(number).0 as u64).sum::<u64>();
            let (sent, got) = (near.counters(), far.counters());
            for (frames, all) in [
                ([sent.frames_sent, sent.copies, got.frames_received, got.copies], count as u64),
                ([sent.bytes_sent, got.bytes_received, bytes, bytes], bytes),
                ([sent.send_failed, sent.send_full, got.receive_lost, got.receive_calls], 0),
            ] {
                assert_eq!(frames, [all; 4], "{sent:?} {got:?}");
            }
            // A batch is a call, or two if it does not fit the buffer.
            let expected = if mtu > 9000 { calls..=2 * calls } else { calls..=calls };
            assert!(expected.contains(&sent.send_calls), "{calls} batches: {sent:?}");
        }
    }

    /// A batch that is full leaves by itself. Frames beyond the receiver's ring are lost, and it
    /// learns of that.
    #[test]
    fn a_full_ring_loses_what_comes_last() {
        let [mut near, mut far] = pair(9000);
        let slots = 320;
        for number in 0..slots + 80 {
            send(&mut near, &far, 60, number as u8);
        }
        assert!(near.flush());
        assert_eq!(near.counters().frames_sent, slots + 80);
        assert!(far.is_ready());
        let got = collect(&mut far, near.own, slots as usize, 1000);
        assert!(got.iter().enumerate().all(|(number, it)| *it == (60, number as u8)));
        for number in 0..8 {
            send(&mut near, &far, 60, number);
            assert!(near.flush());
            assert_eq!(collect(&mut far, near.own, 1, 64), [(60, number)]);
        }
        assert!(far.counters().receive_lost > 0, "{:?}", far.counters());
    }

    /// What an interface refuses that is down counts as failed, and holds up nothing.
    #[test]
    fn an_interface_that_is_down_loses_frames() {
        within_limit(lose_frames);
    }

    fn lose_frames() {
        let [mut near, mut far] = pair(1500);
        ip("link set near down").expect("it goes down");
        for number in 0..3 {
            send(&mut near, &far, 60, number);
        }
        assert!(near.flush());
        let counters = near.counters();
        assert_eq!((counters.send_failed, counters.frames_sent), (3, 0), "{counters:?}");
        ip("link set near up").expect("it comes up");
        let since = Instant::now();
        while far.receive(64, |_, _| {}) == 0 {
            assert!(since.elapsed() < Duration::from_secs(8), "the wire stays dead");
            send(&mut near, &far, 60, 9);
            near.flush();
        }
    }
}
