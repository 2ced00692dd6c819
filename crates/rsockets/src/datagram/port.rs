//! A queue pair for datagrams on one device, with its memory.

use crate::area::Area;
use crate::datagram::frame::{Hello, Seal};
use crate::device::{Device, as_error};
use crate::options::Sizes;
use bellwire_rdma::{
    Access, Attributes, Bytes, Capacity, CqId, DATAGRAM_BYTES, Datagram, EventQueue, Mask,
    Operation, QpState, QueuePairOptions, SendRequest, Service, Sge, WorkStatus,
};
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// The most bytes of a datagram between queue pairs.
const WHOLE: usize = DATAGRAM_BYTES as usize;
/// Bytes before each datagram that is received.
const ROUTE_HEADER: usize = 40;
/// Bytes of a place that receives, in whole cache lines.
const ROOM: usize = (ROUTE_HEADER + WHOLE).next_multiple_of(64);
/// A completion has the number of its place, and one of a send this bit too.
const SEND: u64 = 1 << 32;

/// The most bytes of a program's datagram.
pub const MOST_BYTES: usize = WHOLE - Seal::BYTES;

/// A datagram that has come.
pub struct Came {
    /// Its place, which [`Port::post`] frees.
    pub place: u16,
    /// Where its seal and its bytes lie in the port's memory.
    pub seal: [u8; Seal::BYTES],
    pub bytes: Range<usize>,
}

/// A queue pair and its memory.
pub struct Port {
    pub device: Arc<Device>,
    queue_pair: u32,
    queue: CqId,
    key: u32,
    inward: Area,
    inward_key: u32,
    outward: Area,
    outward_key: u32,
    /// Places of `outward` that nothing uses.
    free: Vec<u16>,
    sends: u16,
    armed: bool,
}

impl Port {
    /// A queue pair on `device` that receives, whose completions raise events of `channel`.
    pub fn new(
        device: Arc<Device>,
        sizes: Sizes,
        channel: &Arc<EventQueue<usize>>,
    ) -> io::Result<Port> {
        let receives = (sizes.receive_bytes / ROOM).clamp(4, 4096);
        let sends = sizes.sends;
        let inward = Area::new(receives * ROOM)?;
        let outward = Area::new(sends * WHOLE)?;
        let mut random = [0; 4];
        rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
        // SAFETY: `drop` unmaps the areas after the registrations have ended, or never.
        let inward_key =
            unsafe { device.register(inward.start(), inward.length(), Access::LOCAL_WRITE) }?;
        let made = (|| {
            // SAFETY: as above.
            let outward_key =
                unsafe { device.register(outward.start(), outward.length(), Access::empty()) }?;
            let mut adapter = device.context.lock();
            let queue = adapter
                .create_queue(receives + sends, Some(channel.clone()), 0)
                .map_err(as_error)?;
            let options = QueuePairOptions {
                service: Service::Datagram,
                domain: device.domain,
                send_queue: queue,
                receive_queue: queue,
                shared: None,
                capacity: Capacity {
                    sends,
                    receives,
                    send_parts: 1,
                    receive_parts: 1,
                    inline_bytes: 0,
                },
                signal_all: true,
                object: 0,
            };
            let queue_pair = adapter.create_queue_pair(&options).map_err(as_error)?;
            Ok((outward_key, queue, queue_pair))
        })();
        let (outward_key, queue, queue_pair) = made.inspect_err(|_: &io::Error| {
            device.deregister(inward_key);
        })?;
        let mut port = Port {
            device,
            queue_pair,
            queue,
            // The highest bit would mean another key.
            key: u32::from_ne_bytes(random) >> 1,
            inward,
            inward_key,
            outward,
            outward_key,
            free: (0..sends as u16).collect(),
            sends: sends as u16,
            armed: false,
        };
        port.begin()?;
        for place in 0..receives as u16 {
            port.post(place)?;
        }
        Ok(port)
    }

    /// To the state in which it sends and receives.
    fn begin(&mut self) -> io::Result<()> {
        let mut adapter = self.device.context.lock();
        let mut new = adapter.query(self.queue_pair).map_err(as_error)?.0;
        for (state, mask) in [
            (QpState::Init, Mask::PKEY_INDEX | Mask::PORT | Mask::QKEY),
            (QpState::ReadyToReceive, Mask::empty()),
            (QpState::ReadyToSend, Mask::SEND_PSN),
        ] {
            new = Attributes { state, qkey: self.key, port: 1, ..new };
            adapter.modify(self.queue_pair, Mask::STATE | mask, &new).map_err(as_error)?;
        }
        Ok(())
    }

    /// The way to it, for who has asked with this nonce.
    pub fn hello(&self, nonce: u64, seal: Seal) -> Hello {
        let host = self.device.context.lock().host();
        Hello { nonce, seal, host, queue_pair: self.queue_pair, key: self.key }
    }

    /// A place receives from now on.
    pub fn post(&mut self, place: u16) -> io::Result<()> {
        let at = usize::from(place) * ROOM;
        let part = Sge {
            address: self.inward.start() as u64 + at as u64,
            length: (ROUTE_HEADER + WHOLE) as u32,
            key: self.inward_key,
        };
        let mut adapter = self.device.context.lock();
        adapter.post_receive(self.queue_pair, u64::from(place), &[part]).map_err(as_error)
    }

    /// Copies bytes that have come, as many as there is room for.
    pub fn copy(&self, from: Range<usize>, to: &mut [u8]) {
        self.inward.get(from, to);
    }

    /// Whether it takes a datagram to send.
    pub fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    /// Whether all that was sent has left.
    pub fn is_sent(&self) -> bool {
        self.free.len() == usize::from(self.sends)
    }

    /// Sends the parts as one datagram. `false`: there is no room.
    pub fn send(&mut self, way: &Hello, parts: &[&[u8]]) -> io::Result<bool> {
        let Some(place) = self.free.pop() else { return Ok(false) };
        let start = usize::from(place) * WHOLE;
        self.outward.put(start, &way.seal.emit());
        let mut at = start + Seal::BYTES;
        for part in parts {
            self.outward.put(at, part);
            at += part.len();
        }
        let part = Sge {
            address: self.outward.start() as u64 + start as u64,
            length: (at - start) as u32,
            key: self.outward_key,
        };
        let to = Datagram { host: way.host, queue_pair: way.queue_pair, key: way.key };
        let request = SendRequest {
            id: SEND | u64::from(place),
            operation: Operation::default(),
            bytes: Bytes::Listed(&[part]),
            signaled: true,
            solicited: false,
            fence: false,
            to: Some(to),
        };
        let posted = self.device.context.lock().post_send(self.queue_pair, &request);
        posted.map_err(|refusal| {
            self.free.push(place);
            as_error(refusal)
        })?;
        Ok(true)
    }

    /// Takes what has completed. Whether anything has.
    pub fn pump(&mut self, came: &mut Vec<Came>) -> bool {
        let mut any = false;
        loop {
            let done = self.device.context.lock().poll(self.queue);
            let Some(done) = done else { return any };
            // It may have raised the event.
            (any, self.armed) = (true, false);
            let place = done.id as u16;
            if done.id & SEND != 0 {
                self.free.push(place);
                if done.status != WorkStatus::Success {
                    self.recover();
                }
                continue;
            }
            let start = usize::from(place) * ROOM + ROUTE_HEADER;
            let length = (done.length as usize).saturating_sub(ROUTE_HEADER);
            if done.status == WorkStatus::Success && length >= Seal::BYTES {
                let mut seal = [0; Seal::BYTES];
                self.inward.get(start..start + Seal::BYTES, &mut seal);
                came.push(Came { place, seal, bytes: start + Seal::BYTES..start + length });
            } else if self.post(place).is_err() {
                crate::log::say("a place for datagrams is lost");
            }
        }
    }

    /// A send that failed stops those after it: SQE of the specification.
    fn recover(&mut self) {
        let mut adapter = self.device.context.lock();
        if let Ok((mut new, _)) = adapter.query(self.queue_pair)
            && new.state == QpState::SendError
        {
            new.state = QpState::ReadyToSend;
            let _ = adapter.modify(self.queue_pair, Mask::STATE, &new);
        }
    }

    /// The next completion raises an event of the channel. `false`: it does already.
    pub fn arm(&mut self) -> bool {
        if self.armed {
            return false;
        }
        self.armed = self.device.context.lock().arm(self.queue, false).is_ok();
        self.armed
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        {
            let mut adapter = self.device.context.lock();
            // Without its queue pair nothing else uses the queue.
            let _ = adapter.destroy_queue_pair(self.queue_pair);
            let _ = adapter.destroy_queue(self.queue);
        }
        let areas = [(&mut self.inward, self.inward_key), (&mut self.outward, self.outward_key)];
        for (area, key) in areas {
            if !self.device.deregister(key)
                && let Ok(other) = Area::new(1)
            {
                std::mem::replace(area, other).leak();
            }
        }
    }
}
