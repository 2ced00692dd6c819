//! Work queues: descriptors in the order of posting. The program gets them back in that order.

use crate::abi::{Descriptor, Return, ViCallback, ViState, status};
use crate::callback::Call;
use crate::cq::NOTIFICATIONS;
use crate::handle::{Handle, vi_of};
use crate::nic::{QUEUE_DEPTH, State, on_nic};
use crate::pointer::{Out, call};
use crate::table::place_of;
use crate::translate::{Agent, Operation, Translated};
use crate::wait::{timeout_of, wait_on_nic};
use std::collections::VecDeque;
use std::ffi::{c_ulong, c_void};
use std::sync::atomic::{AtomicU32, Ordering};

/// A posted descriptor.
pub struct Entry {
    pub descriptor: *mut Descriptor,
    /// Memory handle of the descriptor itself.
    handle: u32,
    pub translated: Translated,
    /// Device operations that it still waits for.
    pub left: u8,
    pub done: bool,
    // The outcome.
    pub error: u32,
    pub length: u32,
    pub immediate: Option<u32>,
    pub is_remote_write: bool,
}

/// One of a VI's two queues.
pub struct WorkQueue {
    pub entries: VecDeque<Entry>,
    /// Number of the first entry, counted from the first ever posted.
    pub base: u64,
    /// Entries at the front whose outcome is in the program's descriptor.
    reported: usize,
    pub cq: Option<u16>,
    handlers: VecDeque<(ViCallback, *mut c_void)>,
}

impl WorkQueue {
    pub fn new(cq: Option<u16>) -> Self {
        WorkQueue { entries: VecDeque::new(), base: 0, reported: 0, cq, handlers: VecDeque::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Whether a descriptor is unfinished.
    pub fn has_open(&self) -> bool {
        self.reported < self.entries.len()
    }

    /// Entries at the front that have been reported to the program.
    pub fn reported(&self) -> usize {
        self.reported
    }

    pub fn find(&mut self, number: u64) -> Option<&mut Entry> {
        let place = usize::try_from(number.checked_sub(self.base)?).ok()?;
        self.entries.get_mut(place)
    }
}

impl Entry {
    /// Writes the outcome to the program's descriptor (M-25), the status last: a program may poll
    /// the status alone.
    fn report(&self) {
        let mut bits = status::DONE | self.error;
        bits |= match self.is_remote_write {
            true => status::OP_REMOTE_RDMA_WRITE,
            false => self.translated.operation.status(),
        };
        if self.immediate.is_some() {
            bits |= status::IMMEDIATE;
        }
        // SAFETY: the descriptor is aligned and lies in a region that cannot be deregistered before
        // this.
        unsafe {
            let control = &raw mut (*self.descriptor).control;
            (&raw mut (*control).length).write_volatile(self.length);
            if let (Some(immediate), Operation::Receive) =
                (self.immediate, self.translated.operation)
            {
                (&raw mut (*control).immediate_data).write_volatile(immediate);
            }
            // Pairs with the program's read of the status word.
            AtomicU32::from_ptr(&raw mut (*control).status).store(bits, Ordering::Release);
        }
    }
}

impl State {
    /// Adds or removes an entry as a user of its regions.
    fn use_regions(&mut self, entry: &Entry, more: bool) {
        let pieces = entry.translated.pieces.all().iter().map(|piece| piece.region());
        for place in pieces.chain([place_of(entry.handle)]) {
            if let Some(region) = self.regions.at(place) {
                region.users = if more { region.users + 1 } else { region.users - 1 };
            }
        }
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
        let State { vis, table, .. } = self;
        let vi = vis.at(slot).ok_or(Return::InvalidParameter)?;
        let queue = if receives { &mut vi.receive } else { &mut vi.send };
        if queue.entries.len() == QUEUE_DEPTH {
            return Err(Return::ErrorResource);
        }
        let agent = Agent { table, tag: vi.tag, limit: vi.attributes.max_transfer_size };
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
            let queue = if receives { &mut vi.receive } else { &mut vi.send };
            let Some(entry) = queue.entries.get(queue.reported).filter(|entry| entry.done) else {
                return;
            };
            entry.report();
            queue.reported += 1;
            self.news = true;
            if let Some(cq) = queue.cq {
                self.note(cq, handle, receives);
            } else if let Some((handler, context)) = queue.handlers.pop_front()
                && let Some((descriptor, _)) = self.take(slot, receives)
            {
                self.due(Call::Vi { handler, context, nic, vi: handle, descriptor });
            }
        }
    }

    /// Takes the oldest descriptor out of a queue if it has finished, and says whether it failed.
    fn take(&mut self, slot: u16, receives: bool) -> Option<(*mut Descriptor, bool)> {
        let vi = self.vis.at(slot)?;
        let queue = if receives { &mut vi.receive } else { &mut vi.send };
        queue.reported = queue.reported.checked_sub(1)?;
        let entry = queue.entries.pop_front()?;
        queue.base += 1;
        if !receives {
            vi.issued -= 1;
        }
        self.use_regions(&entry, false);
        Some((entry.descriptor, entry.error != 0))
    }

    fn done(
        &mut self,
        vi: Option<Handle>,
        receives: bool,
    ) -> Result<Option<(*mut Descriptor, bool)>, Return> {
        let slot = self.vi(vi)?.handle.slot;
        Ok(self.take(slot, receives))
    }
}

/// Writes the descriptor that `find` finds.
fn fetch(
    place: Out<'_, *mut Descriptor>,
    find: impl FnOnce() -> Result<(*mut Descriptor, bool), Return>,
) -> Return {
    call(|| {
        // Programs of 1998 to 2005 expect null when nothing is done.
        place.write(std::ptr::null_mut())?;
        let (descriptor, failed) = find()?;
        place.write(descriptor)?;
        if failed { Err(Return::DescriptorError) } else { Ok(()) }
    })
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
            let queue = if receives { &mut vi.receive } else { &mut vi.send };
            // A queue with a completion queue has no notifications of its own.
            if queue.cq.is_some() || queue.handlers.len() == NOTIFICATIONS {
                return Err(Return::ErrorResource);
            }
            queue.handlers.push_back((handler, context));
            Ok(())
        })
    })
}

/// Posts a descriptor to the send queue.
///
/// # Safety
/// Registered memory is mapped, and the program leaves the descriptor's memory alone until it is
/// done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipPostSend(
    vi: *mut c_void,
    descriptor: *mut Descriptor,
    handle: u32,
) -> Return {
    call(|| on_nic(vi_of(vi), |state| state.post(vi_of(vi), descriptor, handle, false)))
}

/// Posts a descriptor to the receive queue.
///
/// # Safety
/// As [`VipPostSend`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipPostRecv(
    vi: *mut c_void,
    descriptor: *mut Descriptor,
    handle: u32,
) -> Return {
    call(|| on_nic(vi_of(vi), |state| state.post(vi_of(vi), descriptor, handle, true)))
}

/// The oldest descriptor of the send queue, if it is done.
///
/// # Safety
/// `descriptor` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipSendDone(
    vi: *mut c_void,
    descriptor: Out<'_, *mut Descriptor>,
) -> Return {
    done(vi, descriptor, false)
}

/// The oldest descriptor of the receive queue, if it is done.
///
/// # Safety
/// As [`VipSendDone`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipRecvDone(
    vi: *mut c_void,
    descriptor: Out<'_, *mut Descriptor>,
) -> Return {
    done(vi, descriptor, true)
}

/// Waits for the oldest descriptor of the send queue.
///
/// # Safety
/// As [`VipSendDone`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipSendWait(
    vi: *mut c_void,
    timeout_ms: c_ulong,
    descriptor: Out<'_, *mut Descriptor>,
) -> Return {
    wait(vi, timeout_ms, descriptor, false)
}

/// Waits for the oldest descriptor of the receive queue.
///
/// # Safety
/// As [`VipSendDone`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipRecvWait(
    vi: *mut c_void,
    timeout_ms: c_ulong,
    descriptor: Out<'_, *mut Descriptor>,
) -> Return {
    wait(vi, timeout_ms, descriptor, true)
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
