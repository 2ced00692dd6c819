//! Event channels.

use bellwire_rdma::EventQueue;
use bellwire_rdmacm::Event;
use std::ffi::c_int;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

/// A channel of events. C reads `fd`.
#[repr(C)]
pub struct CmChannel {
    fd: c_int,
    /// A thread that waits for an event keeps it, too.
    pub queue: Arc<EventQueue<Pending>>,
}

/// An event that the program has not taken.
#[derive(Debug)]
pub struct Pending {
    /// The address of the identifier.
    pub id: usize,
    pub what: What,
}

/// What happened.
#[derive(Debug)]
pub enum What {
    /// A call of this side is done.
    Done(super::abi::Kind),
    /// The other side.
    Came(Event),
    /// A group was joined, or `status` says why not.
    Joined(Joined),
}

/// The end of a call that joins a group.
#[derive(Debug)]
pub struct Joined {
    pub group: Ipv4Addr,
    /// The program's number of this call: a pointer that is not used.
    pub context: usize,
    /// 0, or the negative of an `errno`.
    pub status: c_int,
}

impl CmChannel {
    pub fn new() -> std::io::Result<CmChannel> {
        let queue = Arc::new(EventQueue::new()?);
        Ok(CmChannel { fd: queue.fd(), queue })
    }
}

/// Where the events of an identifier go. It outlives the identifier, because an event may be on its
/// way.
pub struct Mailbox {
    /// The address of the identifier.
    id: usize,
    /// The address of the channel; none after the identifier's end.
    channel: Mutex<Option<usize>>,
}

impl Mailbox {
    pub fn new(id: usize, channel: *const CmChannel) -> Mailbox {
        Mailbox { id, channel: Mutex::new(Some(channel as usize)) }
    }

    pub fn put(&self, what: What) {
        let channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = *channel {
            // SAFETY: a channel outlives its identifiers, which leave it before they end.
            let channel = unsafe { &*(channel as *const CmChannel) };
            channel.queue.push(Pending { id: self.id, what });
        }
    }

    /// Drops what waits of a group that is left.
    pub fn forget(&self, group: Ipv4Addr) {
        let channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = *channel {
            // SAFETY: as above.
            let channel = unsafe { &*(channel as *const CmChannel) };
            channel.queue.remove(|pending| {
                let is_group = matches!(&pending.what, What::Joined(it) if it.group == group);
                pending.id == self.id && is_group
            });
        }
    }

    /// Moves what waits to another channel; `None`: drops it, and all that follows.
    pub fn move_to(&self, new: Option<*const CmChannel>) {
        let mut channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::replace(&mut *channel, new.map(|new| new as usize));
        let Some(old) = old else { return };
        // SAFETY: as above.
        let old = unsafe { &*(old as *const CmChannel) };
        let waiting = old.queue.take(|pending| pending.id == self.id);
        match new {
            Some(new) => {
                // SAFETY: the program gives a channel that exists.
                let new = unsafe { &*new };
                waiting.into_iter().for_each(|pending| new.queue.push(pending));
            }
            None => {
                // Requests in it refuse themselves.
                drop(channel);
                drop(waiting);
            }
        }
    }
}
