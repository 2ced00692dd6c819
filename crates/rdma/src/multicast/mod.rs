//! Multicast: datagrams to all queue pairs that are attached to a group.
//!
//! IP multicast carries them, on the host as well: the kernel gives a datagram to the socket of
//! each adapter in the group, on each host of the link, the sender's own one included. So there is
//! no list of members that could be outdated. Adapters on different interfaces of a host are apart,
//! as ports of cards are.
//!
//! Each group has a socket that is bound to the group's address. It gets nothing else, and the
//! kernel's limit of memberships of one socket does not count. What comes is given to the attached
//! queue pairs, each of which checks its Q_Key.

mod frame;

use crate::adapter::Adapter;
use crate::arrive::Arrived;
use crate::error::{Refusal, Result};
use crate::queue_pair::Service;
use crate::state::State;
use bellwire_device::{KEY_VARIABLE, names_key};
use bellwire_ring::canary::planted;
use bellwire_ring::memory::View;
pub(crate) use frame::Frame;
use rustix::event::epoll;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// The UDP port of all groups. Linux gives no port above 60,999 to programs that want any.
pub const PORT: u16 = 64_791;
/// The queue pair number of datagrams to a group (InfiniBand specification, 3.5.10).
pub const GROUP_QUEUE_PAIR: u32 = 0xff_ffff;
/// Groups of one adapter.
pub const GROUPS: usize = 128;
/// Queue pairs of one adapter in one group.
pub const MEMBERS: usize = 256;

/// Frames of one group that are taken in one turn, so that a flood does not stop other work.
const BUDGET: usize = 32;
/// Groups that are looked at in one turn.
const READY: usize = 16;
/// What a group's socket should hold while nobody looks. The kernel may give less.
const SOCKET_BYTES: usize = 1 << 20;

/// Whether the device `name` carries groups: `udp` or `auto:udp`, with an address or settings. One
/// with a key does not: groups are not sealed, and it sends nothing plain.
pub(crate) fn is_carrier(name: &str) -> bool {
    let bare = name.strip_prefix("auto:").unwrap_or(name);
    let has_key = names_key(name) || std::env::var_os(KEY_VARIABLE).is_some();
    bare.split([':', '?']).next() == Some("udp") && !has_key
}

struct Group {
    address: Ipv4Addr,
    socket: UdpSocket,
    /// Attached queue pairs.
    members: Vec<u32>,
}

/// The groups of an adapter.
pub(crate) struct Multicast {
    /// The address whose interface carries the groups; `None`: the device has none.
    own: Option<Ipv4Addr>,
    groups: Vec<Group>,
    /// Readable while a group has a frame. Made with the first group.
    ready: Option<Arc<OwnedFd>>,
    /// Sends to all groups. Made with the first datagram.
    sender: Option<UdpSocket>,
    frame: Box<[u8]>,
}

/// What became of a datagram to a group.
pub(crate) enum Sent {
    Yes,
    /// The socket has no room now.
    NoRoom,
    /// The device does not carry groups.
    Unsupported,
}

impl Multicast {
    /// Of the device `name`. The node of one that carries groups is its IPv4 address.
    pub(crate) fn new(name: &str, node: u32) -> Multicast {
        let own = is_carrier(name).then(|| Ipv4Addr::from(node));
        let frame = vec![0; Frame::MOST + 1].into_boxed_slice();
        Multicast { own, groups: Vec::new(), ready: None, sender: None, frame }
    }

    /// What a sleeper waits for besides the function.
    pub(crate) fn ready(&self) -> Option<Arc<OwnedFd>> {
        self.ready.clone()
    }

    pub(crate) fn has(&self, member: u32) -> bool {
        self.groups.iter().any(|group| group.members.contains(&member))
    }

    /// Whether a datagram goes to a group. Other devices have nodes with such numbers.
    pub(crate) fn is_group(&self, host: Ipv4Addr, queue_pair: u32) -> bool {
        host.is_multicast() && (self.own.is_some() || queue_pair == GROUP_QUEUE_PAIR)
    }

    fn attach(&mut self, member: u32, address: Ipv4Addr) -> Result<()> {
        if let Some(group) = self.groups.iter_mut().find(|group| group.address == address) {
            if group.members.contains(&member) {
                return Ok(());
            }
            if group.members.len() >= MEMBERS {
                return Err(Refusal::Full("the group has as many queue pairs as one may have"));
            }
            group.members.push(member);
            return Ok(());
        }
        let own = self.own.ok_or(Refusal::Unsupported(NO_GROUPS))?;
        if self.groups.len() >= GROUPS {
            return Err(Refusal::Full("the context is in as many groups as it may be"));
        }
        let ready = match &self.ready {
            Some(ready) => ready.clone(),
            None => {
                let flags = epoll::CreateFlags::CLOEXEC;
                let made = epoll::create(flags).map_err(io::Error::from)?;
                self.ready.insert(Arc::new(made)).clone()
            }
        };
        let socket = listen(address, own)?;
        let data = epoll::EventData::new_u64(u64::from(u32::from(address)));
        epoll::add(&*ready, &socket, data, epoll::EventFlags::IN).map_err(io::Error::from)?;
        self.groups.push(Group { address, socket, members: vec![member] });
        Ok(())
    }

    fn detach(&mut self, member: u32, address: Ipv4Addr) -> Result<()> {
        let not_attached = Refusal::Invalid("the queue pair is not attached to this group");
        let place = self.groups.iter().position(|group| group.address == address);
        let Some(place) = place else { return Err(not_attached) };
        let members = &mut self.groups[place].members;
        let Some(at) = members.iter().position(|&number| number == member) else {
            return Err(not_attached);
        };
        members.swap_remove(at);
        if members.is_empty() {
            // The kernel forgets the socket that closes, and leaves the group.
            self.groups.swap_remove(place);
        }
        Ok(())
    }

    /// Sends a datagram to a group. The caller has checked its length.
    pub(crate) fn send(&mut self, to: Ipv4Addr, frame: &Frame, body: View<'_>) -> Sent {
        let Some(own) = self.own else { return Sent::Unsupported };
        let Some(bytes) = self.frame.get_mut(..Frame::BYTES + body.len()) else { return Sent::Yes };
        body.read(0, &mut bytes[Frame::BYTES..]);
        frame.emit(bytes);
        let sender = match &self.sender {
            Some(sender) => Ok(sender),
            None => speak(own).map(|made| &*self.sender.insert(made)),
        };
        match sender.and_then(|sender| sender.send_to(bytes, (to, PORT))) {
            Ok(_) => Sent::Yes,
            Err(error) if error.kind() == ErrorKind::WouldBlock => Sent::NoRoom,
            Err(error) => {
                tracing::warn!(%error, %to, "a datagram to a group was not sent, and is lost");
                Sent::Yes
            }
        }
    }

    /// The groups that have a frame.
    fn due(&self) -> Vec<Ipv4Addr> {
        let Some(ready) = &self.ready else { return Vec::new() };
        let mut events = Vec::with_capacity(READY);
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        let spare = rustix::buffer::spare_capacity(&mut events);
        if epoll::wait(&**ready, spare, Some(&now)).is_err() {
            return Vec::new();
        }
        events.iter().map(|event| Ipv4Addr::from(event.data.u64() as u32)).collect()
    }
}

const NO_GROUPS: &str = "multicast needs a device udp:ADDRESS or auto:udp:ADDRESS, without a key";

/// A socket that receives what is sent to a group on the interface of an address.
fn listen(group: Ipv4Addr, own: Ipv4Addr) -> io::Result<UdpSocket> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None)?;
    // Each adapter of the host has a socket at this address.
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BYTES)?;
    // Without this it would also get what other sockets have joined, on other interfaces.
    only_own_memberships(&socket)?;
    rustix::net::bind(&socket, &SocketAddrV4::new(group, PORT))?;
    let socket = UdpSocket::from(socket);
    socket.join_multicast_v4(&group, &own)?;
    Ok(socket)
}

/// Clears `IP_MULTICAST_ALL`.
#[allow(unsafe_code)]
fn only_own_memberships(socket: &OwnedFd) -> io::Result<()> {
    let no: libc::c_int = 0;
    let (value, length) = ((&raw const no).cast(), size_of_val(&no) as libc::socklen_t);
    // SAFETY: the option is a number, whose address and length are given.
    let set = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_MULTICAST_ALL,
            value,
            length,
        )
    };
    if set == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A socket that sends to groups over the interface of an address, and comes from that address.
fn speak(own: Ipv4Addr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((own, 0))?;
    socket.set_nonblocking(true)?;
    sockopt::set_ip_multicast_if(&socket, &own)?;
    // The adapters of this host, and this one, get it too.
    socket.set_multicast_loop_v4(true)?;
    Ok(socket)
}

impl Adapter {
    /// Whether the device carries groups.
    pub fn has_multicast(&self) -> bool {
        self.state.multicast.own.is_some()
    }

    /// Attaches a queue pair of datagrams to a group; once more changes nothing.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] for another service or an address that is no group,
    /// [`Refusal::Unsupported`] on devices without an IPv4 address, [`Refusal::Full`] beyond
    /// [`GROUPS`] and [`MEMBERS`], [`Refusal::System`] where the kernel refuses.
    pub fn attach(&mut self, number: u32, group: Ipv4Addr) -> Result<()> {
        let gone = Refusal::Invalid("there is no such queue pair (any more)");
        let qp = self.state.qps.get(number).ok_or(gone)?;
        if qp.options.service != Service::Datagram {
            return Err(Refusal::Invalid("only queue pairs of UD are attached to a group"));
        }
        if !group.is_multicast() {
            return Err(Refusal::Invalid("the GID is not an IPv4-mapped group"));
        }
        self.state.multicast.attach(number, group)
    }

    /// Detaches a queue pair from a group.
    ///
    /// # Errors
    /// [`Refusal::Invalid`]: it is not attached.
    pub fn detach(&mut self, number: u32, group: Ipv4Addr) -> Result<()> {
        self.state.multicast.detach(number, group)
    }

    /// A queue pair does not get what it sends to a group itself, also if it is attached.
    pub fn ignore_own(&mut self, number: u32) {
        self.state.qps.get_mut(number).into_iter().for_each(|qp| qp.ignores_own = true);
    }

    /// A descriptor that is readable while datagrams of groups wait, once there is a group.
    pub fn group_fd(&self) -> Option<Arc<OwnedFd>> {
        self.state.multicast.ready()
    }
}

impl State {
    /// Takes what came for groups. Returns the number of frames.
    pub(crate) fn take_multicasts(&mut self) -> usize {
        if self.multicast.groups.is_empty() {
            return 0;
        }
        let mut taken = 0;
        let mut frame = std::mem::take(&mut self.multicast.frame);
        for address in self.multicast.due() {
            for _ in 0..BUDGET {
                let Some(group) = self.multicast.groups.iter().find(|it| it.address == address)
                else {
                    break;
                };
                let Ok((length, from)) = group.socket.recv_from(&mut frame) else { break };
                taken += 1;
                if let SocketAddr::V4(from) = from {
                    self.on_multicast(*from.ip(), address, &frame[..length]);
                }
            }
        }
        self.multicast.frame = frame;
        taken
    }

    /// Gives a frame to all queue pairs in its group.
    fn on_multicast(&mut self, from: Ipv4Addr, group: Ipv4Addr, bytes: &[u8]) {
        let Some((frame, payload)) = Frame::parse(bytes) else {
            tracing::debug!(%from, %group, "a stranger's datagram to a group was dropped");
            return;
        };
        let Frame { source, key, immediate, solicited } = frame;
        let route = (u32::from(from), u32::from(group));
        let body = View::of(payload);
        let datagram = Arrived { route, source, key, immediate, solicited, body };
        let place = self.multicast.groups.iter().position(|it| it.address == group);
        let mut at = 0;
        while let Some(&member) = place.and_then(|it| self.multicast.groups[it].members.get(at)) {
            let is_own = member == source && route.0 == self.address.node;
            let ignores = self.qps.get(member).is_some_and(|qp| qp.ignores_own);
            if !(is_own && ignores) {
                self.deliver_datagram(member, &datagram);
            }
            at += 1;
            if planted("multicast-first-only") {
                break;
            }
        }
    }
}
