//! A stream on a queue pair: what the stream wants is posted, and what completes goes to it.

use crate::area::Area;
use crate::device::{Device, as_error};
use crate::message::{Hello, Kind, Mapping, RESERVE};
use crate::options::Sizes;
use crate::stream::{Broken, Slot, Stream};
use bellwire_rdma::{
    Access, Attributes, Bytes, Capacity, CqId, EventQueue, Mask, Operation, QpState,
    QueuePairOptions, SendRequest, Service, Sge, WorkCompletion, WorkOpcode, WorkStatus,
};
use bellwire_rdmacm::Offer;
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// A completion of a receive has the number of its slot, and one of a send this bit.
const SEND: u64 = 1 << 32;
/// Acknowledgement timeout: about a second, and the most retries. A dead peer is noticed earlier.
const TIMEOUT: u8 = 18;
const RETRIES: u8 = 7;
/// Retries without a receive: for ever, because credit sees to receives.
const RNR_RETRIES: u8 = 7;
/// 0.64 ms.
const RNR_TIMER: u8 = 12;
/// `IBV_MTU_4096`
const MTU_4096: u32 = 5;

/// Why a connection does not work any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// The peer is gone without an end of its stream, or broke the protocol.
    Reset,
    /// The peer has closed in order.
    Closed,
}

/// A queue pair with its memory, and the stream on it once the peer is known.
pub struct Connection {
    device: Arc<Device>,
    queue_pair: u32,
    queue: CqId,
    slots: Area,
    slots_key: u32,
    ring: Area,
    ring_key: u32,
    own: Hello,
    sizes: Sizes,
    psn: u32,
    stream: Option<Stream>,
    /// Bytes written before the peer was known are refused; nothing is sent before this.
    is_open: bool,
    lost: Option<Lost>,
    own_maps: Vec<Option<Mapping>>,
    peer_maps: Vec<Mapping>,
    announcements: VecDeque<Mapping>,
    /// A completion raises an event.
    armed: bool,
}

impl Connection {
    /// A queue pair on `device`, whose completions raise events of `channel`.
    pub fn new(
        device: Arc<Device>,
        sizes: Sizes,
        channel: &Arc<EventQueue<usize>>,
    ) -> io::Result<Connection> {
        let own = Hello { slots: sizes.slots, slot_bytes: sizes.slot_bytes(), maps: sizes.maps };
        let receives = usize::from(own.slots + RESERVE);
        let slots = Area::new(receives * own.slot_bytes as usize)?;
        let ring = Area::new(sizes.send_bytes)?;
        // SAFETY: `drop` unmaps the areas after the registrations have ended, or never.
        let slots_key =
            unsafe { device.register(slots.start(), slots.length(), Access::LOCAL_WRITE) }?;
        let made = (|| {
            // SAFETY: as above.
            let ring_key =
                unsafe { device.register(ring.start(), ring.length(), Access::empty()) }?;
            let mut adapter = device.context.lock();
            let depth = receives + sizes.sends + 1;
            let queue = adapter.create_queue(depth, Some(channel.clone()), 0).map_err(as_error)?;
            let options = QueuePairOptions {
                service: Service::ReliableConnection,
                domain: device.domain,
                send_queue: queue,
                receive_queue: queue,
                shared: None,
                capacity: Capacity {
                    sends: sizes.sends,
                    receives,
                    send_parts: 2,
                    receive_parts: 1,
                    inline_bytes: sizes.inline_bytes.max(Mapping::BYTES),
                },
                signal_all: true,
                object: 0,
            };
            let queue_pair = adapter.create_queue_pair(&options).map_err(as_error)?;
            Ok((ring_key, queue, queue_pair))
        })();
        let (ring_key, queue, queue_pair) = made.inspect_err(|_: &io::Error| {
            device.deregister(slots_key);
        })?;
        let mut random = [0; 4];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        let mut connection = Connection {
            device,
            queue_pair,
            queue,
            slots,
            slots_key,
            ring,
            ring_key,
            own,
            sizes,
            psn: u32::from_ne_bytes(random) & 0xff_ffff,
            stream: None,
            is_open: false,
            lost: None,
            own_maps: Vec::new(),
            peer_maps: Vec::new(),
            announcements: VecDeque::new(),
            armed: false,
        };
        connection.begin()?;
        Ok(connection)
    }

    fn begin(&mut self) -> io::Result<()> {
        let mut attributes = self.attributes();
        attributes.state = QpState::Init;
        let mask = Mask::STATE | Mask::PKEY_INDEX | Mask::PORT | Mask::ACCESS;
        self.modify(mask, &attributes)?;
        for slot in 0..self.own.slots + RESERVE {
            self.post_slot(slot)?;
        }
        Ok(())
    }

    fn attributes(&self) -> Attributes {
        let mut attributes =
            self.device.context.lock().query(self.queue_pair).expect("it exists").0;
        attributes.access = Access::REMOTE_WRITE;
        attributes
    }

    fn modify(&self, mask: Mask, new: &Attributes) -> io::Result<()> {
        self.device.context.lock().modify(self.queue_pair, mask, new).map_err(as_error)
    }

    fn slot_range(&self, slot: u16) -> Range<usize> {
        let bytes = self.own.slot_bytes as usize;
        let start = usize::from(slot) * bytes;
        start..start + bytes
    }

    fn post_slot(&mut self, slot: u16) -> io::Result<()> {
        let range = self.slot_range(slot);
        let place = Sge {
            address: self.slots.start() as u64 + range.start as u64,
            length: range.len() as u32,
            key: self.slots_key,
        };
        let mut adapter = self.device.context.lock();
        adapter.post_receive(self.queue_pair, u64::from(slot), &[place]).map_err(as_error)
    }

    /// What this side brings to the connection.
    pub fn offer(&self) -> Offer {
        Offer {
            queue_pair: self.queue_pair,
            psn: self.psn,
            gid: self.device.own.gid(),
            retry_count: RETRIES,
            rnr_retry_count: RNR_RETRIES,
            service: Service::ReliableConnection as u8,
            data: self.own.emit().to_vec(),
            ..Offer::default()
        }
    }

    /// Connects with what the peer brings. Nothing is sent before [`Connection::open`].
    ///
    /// # Errors
    /// `EPROTO`: the peer is no stream of this kind.
    pub fn connect(&mut self, peer: &Offer) -> io::Result<()> {
        let not_ours = || io::Error::from_raw_os_error(libc::EPROTO);
        let hello = Hello::parse(&peer.data).ok_or_else(not_ours)?;
        let host = std::net::Ipv6Addr::from(peer.gid).to_ipv4_mapped().ok_or_else(not_ours)?;
        let mut attributes = self.attributes();
        attributes.state = QpState::ReadyToReceive;
        (attributes.host, attributes.peer) = (Some(host), peer.queue_pair);
        (attributes.mtu, attributes.rnr_timer) = (MTU_4096, RNR_TIMER);
        attributes.receive_psn = peer.psn;
        let mask = Mask::STATE
            | Mask::PATH
            | Mask::MTU
            | Mask::PEER
            | Mask::RECEIVE_PSN
            | Mask::PEER_READS
            | Mask::RNR_TIMER;
        self.modify(mask, &attributes)?;
        attributes.state = QpState::ReadyToSend;
        attributes.send_psn = self.psn;
        (attributes.timeout, attributes.retry_count) = (TIMEOUT, RETRIES);
        attributes.rnr_retry = RNR_RETRIES;
        let mask = Mask::STATE
            | Mask::SEND_PSN
            | Mask::TIMEOUT
            | Mask::RETRY_COUNT
            | Mask::RNR_RETRY
            | Mask::READS;
        self.modify(mask, &attributes)?;
        // A flight less than the queue has room for a message past the ring.
        self.stream =
            Some(Stream::new(self.sizes.send_bytes, self.sizes.sends - 1, self.own, hello));
        self.peer_maps = vec![Mapping::default(); usize::from(self.own.maps)];
        Ok(())
    }

    /// The device that it is on.
    pub fn device(&self) -> &str {
        &self.device.own.below
    }

    /// The peer is ready, too.
    pub fn open(&mut self) {
        self.is_open = true;
    }

    /// The conversation with the peer has ended. What came before it stays.
    pub fn peer_left(&mut self) {
        self.pump();
        let in_order = self.stream.as_ref().is_some_and(Stream::has_ended);
        self.lose(if in_order { Lost::Closed } else { Lost::Reset });
    }

    fn lose(&mut self, why: Lost) {
        if self.lost.is_none() {
            self.lost = Some(why);
            let mut attributes = self.attributes();
            attributes.state = QpState::Error;
            // From each state there is a way to this one.
            let _ = self.modify(Mask::STATE, &attributes);
        }
    }

    /// Why it does not work any more.
    pub fn lost(&self) -> Option<Lost> {
        self.lost
    }

    /// Takes what has completed, and posts what can be sent. Whether anything completed.
    pub fn pump(&mut self) -> bool {
        let mut done = [None; 16];
        let mut any = false;
        loop {
            let mut count = 0;
            {
                let mut adapter = self.device.context.lock();
                let next = adapter.poll(self.queue);
                if next.is_some() && self.armed {
                    // It may have raised the event.
                    self.armed = false;
                }
                done[0] = next;
                while done[count].is_some() {
                    count += 1;
                    if count == done.len() {
                        break;
                    }
                    done[count] = adapter.next(self.queue);
                }
            }
            for completion in done[..count].iter().flatten() {
                any = true;
                if let Err(broken) = self.completed(completion) {
                    crate::log::say(format_args!("a peer broke the protocol: {}", broken.0));
                    self.lose(Lost::Reset);
                }
            }
            self.transmit();
            if count < done.len() {
                return any;
            }
        }
    }

    fn completed(&mut self, done: &WorkCompletion) -> Result<(), Broken> {
        if self.lost.is_some() {
            return Ok(());
        }
        let Some(stream) = &mut self.stream else { return Ok(()) };
        if done.status != WorkStatus::Success {
            let in_order = stream.has_ended();
            self.lose(if in_order { Lost::Closed } else { Lost::Reset });
            return Ok(());
        }
        if done.id & SEND != 0 {
            stream.completed();
            return Ok(());
        }
        if done.opcode != WorkOpcode::Receive
            || done.flags & bellwire_rdma::work_flag::IMMEDIATE == 0
        {
            return Err(Broken("a message without an immediate value"));
        }
        let slot = done.id as u16;
        match stream.arrived(slot, u32::from_be(done.word), done.length)? {
            Slot::Kept => return Ok(()),
            Slot::Free => {}
            Slot::Mapping => self.mapped(slot, done.length)?,
        }
        self.post_slot(slot).map_err(|_| Broken("a slot cannot be posted"))
    }

    /// The peer announces memory.
    fn mapped(&mut self, slot: u16, length: u32) -> Result<(), Broken> {
        if length as usize != Mapping::BYTES {
            return Err(Broken("a mapping of another length"));
        }
        let mut bytes = [0; Mapping::BYTES];
        let start = self.slot_range(slot).start;
        self.slots.get(start..start + Mapping::BYTES, &mut bytes);
        let mapping = Mapping::parse(&bytes);
        let place = self.peer_maps.get_mut(mapping.index as usize);
        *place.ok_or(Broken("more mappings than this side allows"))? = mapping;
        Ok(())
    }

    /// Posts what can be sent.
    fn transmit(&mut self) {
        if !self.is_open || self.lost.is_some() {
            return;
        }
        let Some(stream) = &mut self.stream else { return };
        while let Some(message) = stream.transmit() {
            let mapping = match message.kind {
                Kind::Map => self.announcements.pop_front(),
                _ => None,
            };
            let bytes = mapping.map(|it| it.emit());
            let [first, second] = message.parts.map(|part| Sge {
                address: self.ring.start() as u64 + part.start as u64,
                length: part.len() as u32,
                key: self.ring_key,
            });
            let parts = [first, second];
            let count = parts.iter().filter(|part| part.length > 0).count();
            let bytes = match &bytes {
                Some(bytes) => Bytes::Inline(bytes),
                None => Bytes::Listed(&parts[..count]),
            };
            if post(&self.device, self.queue_pair, sending(message.immediate), bytes).is_err() {
                return self.lose(Lost::Reset);
            }
        }
    }

    /// Takes bytes to be sent. Returns how many: 0 if there is no room.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        if self.lost.is_some() {
            return 0;
        }
        let Some(stream) = &mut self.stream else { return 0 };
        if self.is_open && bytes.len() <= self.sizes.inline_bytes && stream.may_pass(bytes.len()) {
            let operation = sending(stream.pass());
            let posted = post(&self.device, self.queue_pair, operation, Bytes::Inline(bytes));
            if posted.is_err() {
                self.lose(Lost::Reset);
            }
            return bytes.len();
        }
        let mut taken = 0;
        // What is posted early is copied by the other side while this one copies on.
        for part in bytes.chunks(self.own.slot_bytes as usize) {
            let Some(stream) = &mut self.stream else { break };
            let places = stream.put(part.len());
            let (first, second) = part.split_at(places[0].len());
            self.ring.put(places[0].start, first);
            let second = &second[..places[1].len()];
            self.ring.put(places[1].start, second);
            taken += first.len() + second.len();
            self.transmit();
            if first.len() + second.len() < part.len() {
                break;
            }
        }
        taken
    }

    /// Reads bytes, or only looks at them. Returns how many.
    pub fn read(&mut self, to: &mut [u8], peeks: bool) -> usize {
        let mut copied = 0;
        if peeks {
            let Some(stream) = &self.stream else { return 0 };
            for (slot, range) in stream.unread() {
                let place = &mut to[copied..];
                let length = range.len().min(place.len());
                let start = self.slot_range(slot).start + range.start;
                self.slots.get(start..start + length, &mut place[..length]);
                copied += length;
            }
            return copied;
        }
        while copied < to.len() {
            let Some(stream) = &mut self.stream else { break };
            let Some((slot, range)) = stream.unread().next() else { break };
            let place = &mut to[copied..];
            let length = range.len().min(place.len());
            let start = usize::from(slot) * self.own.slot_bytes as usize + range.start;
            self.slots.get(start..start + length, &mut place[..length]);
            copied += length;
            if let Some(slot) = stream.read(length)
                && self.lost.is_none()
                && self.post_slot(slot).is_err()
            {
                self.lose(Lost::Reset);
            }
        }
        // Credit that is due leaves.
        self.transmit();
        copied
    }

    /// The stream, once there is a peer.
    pub fn stream(&self) -> Option<&Stream> {
        self.stream.as_ref()
    }

    /// No more data follows.
    pub fn end(&mut self) {
        if let Some(stream) = &mut self.stream {
            stream.end();
        }
        self.transmit();
    }

    /// What comes is dropped from now on, and what is there.
    pub fn discard(&mut self) {
        if let Some(stream) = &mut self.stream {
            stream.discard();
        }
        let mut nowhere = [0; 4096];
        while self.read(&mut nowhere, false) > 0 {}
    }

    /// The next completion raises an event of the channel. `false`: it does already.
    pub fn arm(&mut self) -> bool {
        if self.armed {
            return false;
        }
        self.armed = self.device.context.lock().arm(self.queue, false).is_ok();
        self.armed
    }

    /// The program sleeps, so the device's thread makes progress.
    pub fn sleeps(&self) {
        self.device.context.sleeps();
    }

    // Memory of programs.

    /// Lets the peer write to memory of the program, which it names from `offset` on.
    ///
    /// # Errors
    /// `ENOMEM`: the peer allows no more mappings. `ENOTCONN`.
    ///
    /// # Safety
    /// The memory stays mapped until [`Connection::unmap`], or until the connection is dropped.
    pub unsafe fn map(&mut self, start: *mut u8, length: usize, offset: u64) -> io::Result<()> {
        let error = io::Error::from_raw_os_error;
        let Some(stream) = &mut self.stream else { return Err(error(libc::ENOTCONN)) };
        let most = usize::from(stream.peer().maps);
        let index = match self.own_maps.iter().position(Option::is_none) {
            Some(index) => index,
            None if self.own_maps.len() < most => self.own_maps.len(),
            None => return Err(error(libc::ENOMEM)),
        };
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
        // SAFETY: the caller's promise.
        let key = unsafe { self.device.register(start, length, access) }?;
        let mapping = Mapping {
            offset,
            address: start as u64,
            length: length as u64,
            key,
            index: index as u32,
        };
        if index == self.own_maps.len() {
            self.own_maps.push(None);
        }
        self.own_maps[index] = Some(mapping);
        self.announcements.push_back(mapping);
        stream.announce();
        self.transmit();
        Ok(())
    }

    /// Takes a mapping back.
    ///
    /// # Errors
    /// `EINVAL`: there is none. `EBUSY`: the device uses the memory.
    pub fn unmap(&mut self, start: *mut u8, length: usize) -> io::Result<()> {
        let error = io::Error::from_raw_os_error;
        let is_it = |it: &Option<Mapping>| {
            it.is_some_and(|it| it.address == start as u64 && it.length == length as u64)
        };
        let index = self.own_maps.iter().position(is_it).ok_or_else(|| error(libc::EINVAL))?;
        let mapping = self.own_maps[index].expect("just found");
        if !self.device.deregister(mapping.key) {
            return Err(error(libc::EBUSY));
        }
        self.own_maps[index] = None;
        let ended = Mapping { index: index as u32, ..Mapping::default() };
        self.announcements.push_back(ended);
        if let Some(stream) = &mut self.stream {
            stream.announce();
        }
        self.transmit();
        Ok(())
    }

    /// Writes to memory that the peer has mapped. Returns how many bytes were taken: 0 if there is
    /// no room.
    ///
    /// # Errors
    /// `EINVAL`: the peer has mapped nothing there.
    pub fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut taken = 0;
        while taken < bytes.len() && self.lost.is_none() {
            let at = offset + taken as u64;
            let holds = |it: &&Mapping| at.checked_sub(it.offset).is_some_and(|by| by < it.length);
            let Some(&map) = self.peer_maps.iter().find(holds) else {
                let error = io::Error::from_raw_os_error(libc::EINVAL);
                return if taken > 0 { Ok(taken) } else { Err(error) };
            };
            let by = at - map.offset;
            let most = (map.length - by).min(u64::from(self.own.slot_bytes)) as usize;
            let part = &bytes[taken..][..most.min(bytes.len() - taken)];
            let Some(stream) = &mut self.stream else { break };
            let Some(place) = self.is_open.then(|| stream.aside(part.len())).flatten() else {
                break;
            };
            let part = &part[..place.len()];
            self.ring.put(place.start, part);
            let list = Sge {
                address: self.ring.start() as u64 + place.start as u64,
                length: part.len() as u32,
                key: self.ring_key,
            };
            let operation =
                Operation::Write { address: map.address + by, key: map.key, immediate: None };
            if post(&self.device, self.queue_pair, operation, Bytes::Listed(&[list])).is_err() {
                self.lose(Lost::Reset);
            }
            taken += part.len();
        }
        Ok(taken)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        {
            let mut adapter = self.device.context.lock();
            // Without its queue pair nothing else uses the queue.
            let _ = adapter.destroy_queue_pair(self.queue_pair);
            let _ = adapter.destroy_queue(self.queue);
        }
        for map in self.own_maps.iter().flatten() {
            self.device.deregister(map.key);
        }
        let empty = || Area::new(1);
        for (area, key) in [(&mut self.slots, self.slots_key), (&mut self.ring, self.ring_key)] {
            if !self.device.deregister(key)
                && let Ok(other) = empty()
            {
                std::mem::replace(area, other).leak();
            }
        }
    }
}

/// A send whose receiver learns the immediate value.
fn sending(immediate: u32) -> Operation {
    Operation::Send { immediate: Some(immediate.to_be()), invalidate: None }
}

fn post(
    device: &Device,
    queue_pair: u32,
    operation: Operation,
    bytes: Bytes<'_>,
) -> io::Result<()> {
    let request = SendRequest {
        id: SEND,
        operation,
        bytes,
        signaled: true,
        solicited: false,
        fence: false,
        to: None,
    };
    device.context.lock().post_send(queue_pair, &request).map_err(as_error)
}
