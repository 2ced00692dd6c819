//! The calls of work queues: descriptors are posted, reported and taken.

use crate::abi::{Descriptor, Return, ViCallback, ViState};
use crate::callback::Call;
use crate::cq::NOTIFICATIONS;
use crate::handle::{Handle, vi_of};
use crate::nic::{QUEUE_DEPTH, State, call_on, on_nic};
use crate::pointer::{Out, call};
use crate::translate::Agent;
use crate::wait::{timeout_of, wait_on_nic};
use crate::work_queue::Entry;
use std::ffi::{c_ulong, c_void};

/// A descriptor that has left its queue, and whether it failed.
type Taken = (*mut Descriptor, bool);

impl State {
    /// Adds or removes an entry as a user of its regions.
    fn use_regions(&mut self, entry: &Entry, more: bool) {
        self.memory.use_regions(entry.translated.pieces.all(), entry.handle, more);
    }

    /// Posts a descriptor to one of a VI's queues.
    fn post(
        &mut self,
        vi: Option<Handle>,
        descriptor: *mut Descriptor,
        handle: u32,
        receives: bool,
    ) -> Result<(), Return> {
        let vi = self.vi(vi)?;
        let (slot, state) = (vi.handle.slot, vi.state);
        if !receives && matches!(state, ViState::Idle | ViState::ConnectPending) {
            return Err(Return::InvalidState);
        }
        if receives && state == ViState::Connected && !vi.receive.has_open() {
            // Did a message arrive before this receive?
            self.watch_connection(slot);
        }
        let vi = self.vis.at(slot).ok_or(Return::InvalidParameter)?;
        if vi.queue(receives).entries.len() == QUEUE_DEPTH {
            return Err(Return::ErrorResource);
        }
        let (table, limit) = (&self.memory.table, vi.attributes.max_transfer_size);
        let agent = Agent { table, tag: vi.tag, limit };
        let translated = agent.translate(descriptor, handle, receives)?;
        // SAFETY: translated, so it lies in registered memory.
        unsafe { (&raw mut (*descriptor).control.status).write_volatile(0) };
        let entry = Entry {
            descriptor,
            handle,
            left: 0,
            done: false,
            error: 0,
            length: 0,
            immediate: None,
            is_remote_write: false,
            translated,
        };
        self.use_regions(&entry, true);
        let Some(vi) = self.vis.at(slot) else { return Ok(()) };
        if receives {
            vi.receive.entries.push_back(entry);
            if let Err(code) = self.issue_receive(slot) {
                let refused = self.vis.at(slot).and_then(|vi| vi.receive.entries.pop_back());
                if let Some(entry) = refused {
                    self.use_regions(&entry, false);
                }
                return Err(code);
            }
        } else {
            vi.send.entries.push_back(entry);
            self.issue_sends(slot);
        }
        Ok(())
    }

    /// Reports finished descriptors at the front of a queue, once each: status word and completion
    /// queue (M-25).
    pub fn report(&mut self, slot: u16, receives: bool) {
        loop {
            let nic = self.handle;
            let Some(vi) = self.vis.at(slot) else { return };
            let handle = vi.handle;
            let queue = vi.queue(receives);
            let Some(entry) = queue.entries.get(queue.reported).filter(|entry| entry.done) else {
                return;
            };
            entry.report();
            queue.reported += 1;
            self.waiters.news = true;
            if let Some(cq) = queue.cq {
                self.note(cq, handle, receives);
            } else if let Some((handler, context)) = queue.handlers.pop_front()
                && let Some((descriptor, _)) = self.take(slot, receives)
            {
                self.due(Call::Vi { handler, context, nic, vi: handle, descriptor });
            }
        }
    }

    /// Takes the oldest descriptor out of a queue if it has finished.
    fn take(&mut self, slot: u16, receives: bool) -> Option<Taken> {
        let vi = self.vis.at(slot)?;
        let queue = vi.queue(receives);
        queue.reported = queue.reported.checked_sub(1)?;
        let entry = queue.entries.pop_front()?;
        queue.base += 1;
        if !receives {
            vi.issued -= 1;
        }
        self.use_regions(&entry, false);
        Some((entry.descriptor, entry.error != 0))
    }

    fn done(&mut self, vi: Option<Handle>, receives: bool) -> Result<Option<Taken>, Return> {
        let slot = self.vi(vi)?.handle.slot;
        Ok(self.take(slot, receives))
    }
}

/// Writes the descriptor that `find` finds.
fn fetch(place: Out<'_, *mut Descriptor>, find: impl FnOnce() -> Result<Taken, Return>) -> Return {
    call(|| {
        // Programs of 1998 to 2005 expect null when nothing is done.
        place.write(std::ptr::null_mut())?;
        let (descriptor, failed) = find()?;
        place.write(descriptor)?;
        if failed { Err(Return::DescriptorError) } else { Ok(()) }
    })
}

fn post(vi: *mut c_void, descriptor: *mut Descriptor, handle: u32, receives: bool) -> Return {
    call_on(vi_of(vi), |state| state.post(vi_of(vi), descriptor, handle, receives))
}

fn done(vi: *mut c_void, place: Out<'_, *mut Descriptor>, receives: bool) -> Return {
    fetch(place, || {
        on_nic(vi_of(vi), |state| {
            if let Some(found) = state.done(vi_of(vi), receives)? {
                return Ok(found);
            }
            state.drain();
            state.done(vi_of(vi), receives)?.ok_or(Return::NotDone)
        })
    })
}

fn wait(
    vi: *mut c_void,
    timeout_ms: c_ulong,
    place: Out<'_, *mut Descriptor>,
    receives: bool,
) -> Return {
    fetch(place, || {
        let handle = vi_of(vi);
        wait_on_nic(handle, timeout_of(timeout_ms), |state| state.done(handle, receives))
    })
}

fn notify(
    vi: *mut c_void,
    context: *mut c_void,
    handler: Option<ViCallback>,
    receives: bool,
) -> Return {
    call(|| {
        let handler = handler.ok_or(Return::InvalidParameter)?;
        on_nic(vi_of(vi), |state| {
            let nic = state.handle;
            if let Some((descriptor, _)) = state.done(vi_of(vi), receives)? {
                let vi = state.vi(vi_of(vi))?.handle;
                state.due(Call::Vi { handler, context, nic, vi, descriptor });
                return Ok(());
            }
            let vi = state.vi(vi_of(vi))?;
            let queue = vi.queue(receives);
            // A queue with a completion queue has no notifications of its own.
            if queue.cq.is_some() || queue.handlers.len() == NOTIFICATIONS {
                return Err(Return::ErrorResource);
            }
            queue.handlers.push_back((handler, context));
            Ok(())
        })
    })
}

/// Declares calls of one of the two queues. Each ends with whether that is the receive queue.
macro_rules! calls {
    ($(
        $(#[$doc:meta])*
        $name:ident = $work:ident($($parameter:ident: $of:ty),*; $receives:literal)
    )*) => {
        $(
            $(#[$doc])*
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(vi: *mut c_void, $($parameter: $of),*) -> Return {
                $work(vi, $($parameter,)* $receives)
            }
        )*
    };
}

calls! {
    /// Posts a descriptor to the send queue.
    ///
    /// # Safety
    /// Registered memory is mapped, and the program leaves the descriptor's memory alone until it
    /// is done.
    VipPostSend = post(descriptor: *mut Descriptor, handle: u32; false)

    /// Posts a descriptor to the receive queue.
    ///
    /// # Safety
    /// As [`VipPostSend`].
    VipPostRecv = post(descriptor: *mut Descriptor, handle: u32; true)

    /// The oldest descriptor of the send queue, if it is done.
    ///
    /// # Safety
    /// `descriptor` is null or writable.
    VipSendDone = done(descriptor: Out<'_, *mut Descriptor>; false)

    /// The oldest descriptor of the receive queue, if it is done.
    ///
    /// # Safety
    /// As [`VipSendDone`].
    VipRecvDone = done(descriptor: Out<'_, *mut Descriptor>; true)

    /// Waits for the oldest descriptor of the send queue.
    ///
    /// # Safety
    /// As [`VipSendDone`].
    VipSendWait = wait(timeout_ms: c_ulong, descriptor: Out<'_, *mut Descriptor>; false)

    /// Waits for the oldest descriptor of the receive queue.
    ///
    /// # Safety
    /// As [`VipSendDone`].
    VipRecvWait = wait(timeout_ms: c_ulong, descriptor: Out<'_, *mut Descriptor>; true)
}

/// Has `handler` called with the next descriptor of the send queue that is done, once.
#[unsafe(no_mangle)]
pub extern "C" fn VipSendNotify(
    vi: *mut c_void,
    context: *mut c_void,
    handler: Option<ViCallback>,
) -> Return {
    notify(vi, context, handler, false)
}

/// Has `handler` called with the next descriptor of the receive queue that is done, once.
#[unsafe(no_mangle)]
pub extern "C" fn VipRecvNotify(
    vi: *mut c_void,
    context: *mut c_void,
    handler: Option<ViCallback>,
) -> Return {
    notify(vi, context, handler, true)
}
