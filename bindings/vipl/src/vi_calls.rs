//! The calls of virtual interfaces, and their connections while they last.

use crate::abi::{
    ErrorCode, RELIABLE_DELIVERY, RELIABLE_RECEPTION, Return, UNRELIABLE, ViAttributes, ViState,
};
use crate::handle::{Handle, Kind, nic_of, vi_of};
use crate::nic::{QUEUE_DEPTH, State, TRANSFER_BYTES, call_on, on_nic};
use crate::pointer::{Out, call};
use crate::vi::Vi;
use crate::work_queue::WorkQueue;
use bellwire::{ConnectionState, QueuePair, QueuePairOptions};
use std::ffi::{c_int, c_void};

impl State {
    /// Checks the attributes that the program asks for, and finds the tag.
    fn check_attributes(&mut self, attributes: &ViAttributes) -> Result<u32, Return> {
        let level = attributes.reliability_level;
        if ![UNRELIABLE, RELIABLE_DELIVERY, RELIABLE_RECEPTION].contains(&level) {
            return Err(Return::InvalidReliabilityLevel);
        }
        if attributes.max_transfer_size == 0 || attributes.max_transfer_size > TRANSFER_BYTES {
            return Err(Return::InvalidMtu);
        }
        if !attributes.qos.is_null() {
            return Err(Return::InvalidQos);
        }
        if attributes.enable_rdma_read != 0 && level == UNRELIABLE {
            return Err(Return::InvalidRdmaRead);
        }
        self.memory.tag_of(attributes.ptag)
    }

    fn new_queue_pair(&mut self) -> Result<QueuePair, Return> {
        let options = QueuePairOptions::new(self.completions)
            .send_depth(2 * QUEUE_DEPTH)
            .receive_depth(2 * QUEUE_DEPTH);
        self.function.create_queue_pair(&options).map_err(|_| Return::ErrorResource)
    }

    fn create_vi(
        &mut self,
        attributes: ViAttributes,
        send_cq: *mut c_void,
        receive_cq: *mut c_void,
    ) -> Result<Handle, Return> {
        let tag = self.check_attributes(&attributes)?;
        let (send_cq, receive_cq) = (self.cq_slot_of(send_cq)?, self.cq_slot_of(receive_cq)?);
        let queue_pair = self.new_queue_pair()?;
        let nic = self.handle.nic;
        let nobody = Handle { kind: Kind::Vi, nic, slot: 0, generation: 0 };
        let vi = Vi {
            handle: nobody,
            attributes,
            tag,
            queue_pair,
            state: ViState::Idle,
            send: WorkQueue::new(send_cq),
            receive: WorkQueue::new(receive_cq),
            issued: 0,
            reads: 0,
            looking_up: None,
            peer: None,
            attempt: None,
        };
        let Ok((slot, generation)) = self.vis.insert(vi) else {
            let _ = self.function.destroy_queue_pair(queue_pair);
            return Err(Return::ErrorResource);
        };
        let handle = Handle { slot, generation, ..nobody };
        if let Some(vi) = self.vis.at(slot) {
            vi.handle = handle;
        }
        self.memory.use_tag(tag, true);
        for cq in [send_cq, receive_cq].into_iter().flatten() {
            if let Some(cq) = self.cqs.at(cq) {
                cq.users += 1;
            }
        }
        Ok(handle)
    }

    fn destroy_vi(&mut self, handle: Option<Handle>) -> Result<(), Return> {
        self.drain();
        let vi = self.vi(handle)?;
        if vi.state != ViState::Idle {
            return Err(Return::InvalidState);
        }
        if !vi.send.is_empty() || !vi.receive.is_empty() {
            return Err(Return::ErrorResource);
        }
        let (slot, queue_pair) = (vi.handle.slot, vi.queue_pair);
        let _ = self.function.destroy_queue_pair(queue_pair);
        // Receives that the library posted to drop messages complete while the VI still exists.
        self.drain();
        let Some(vi) = self.vis.remove(slot) else { return Ok(()) };
        self.memory.use_tag(vi.tag, false);
        for cq in [vi.send.cq, vi.receive.cq] {
            if let Some(cq) = cq.and_then(|cq| self.cqs.at(cq)) {
                cq.entries.retain(|entry| entry.0 != vi.handle);
                cq.users -= 1;
            }
        }
        Ok(())
    }

    /// Polls for events without a completion: ended connections, messages without a receive, peers'
    /// requests, timeouts.
    pub fn watch(&mut self) {
        self.door.forget_unused(&mut self.function);
        for slot in self.vis.slots() {
            let Some(vi) = self.vis.at(slot) else { continue };
            match vi.state {
                ViState::Connected => self.watch_connection(slot),
                ViState::ConnectPending => self.go_on_connecting(slot),
                ViState::Idle | ViState::Error => {}
            }
        }
    }

    /// Checks whether a VI is still connected, and whether a message found no receive.
    pub fn watch_connection(&mut self, slot: u16) {
        let Some(vi) = self.vis.at(slot) else { return };
        let Ok(known) = self.function.query(vi.queue_pair) else { return };
        if let ConnectionState::Disconnected { .. } = known.connection {
            // First take what arrived before.
            self.drain();
            self.lose_connection(slot, ErrorCode::ConnLost);
            return;
        }
        if known.backlog_messages == 0 || vi.receive.has_open() {
            return;
        }
        // A message arrived before a receive (M-09). The specification allows dropping it, or
        // breaking the connection.
        if vi.is_reliable() {
            self.break_connection(slot, ErrorCode::RecvqEmpty);
        } else {
            self.drop_messages(slot, known.backlog_messages);
        }
    }

    /// Notes a lost connection: the VI is in error until the program disconnects it.
    pub fn lose_connection(&mut self, slot: u16, code: ErrorCode) {
        let Some(vi) = self.vis.at(slot) else { return };
        if vi.state != ViState::Connected {
            return;
        }
        vi.state = ViState::Error;
        let handle = vi.handle;
        self.flush_send_queue(slot);
        self.tell_error(handle, code);
    }

    /// Breaks a connection because of an error, as reliable VIs do.
    pub fn break_connection(&mut self, slot: u16, code: ErrorCode) {
        let Some(vi) = self.vis.at(slot) else { return };
        let queue_pair = vi.queue_pair;
        self.lose_connection(slot, code);
        let _ = self.function.disconnect(queue_pair);
    }

    /// Ends the connection, if there is one, at the program's request.
    fn disconnect(&mut self, handle: Option<Handle>) -> Result<(), Return> {
        self.drain();
        let vi = self.vi(handle)?;
        if vi.state == ViState::Idle {
            return Err(Return::InvalidState);
        }
        let (slot, old) = (vi.handle.slot, vi.queue_pair);
        vi.state = ViState::Idle;
        vi.peer = None;
        vi.looking_up = None;
        self.give_up_connecting(slot);
        // A new queue pair: a disconnected one takes no receives until it is connected again.
        let _ = self.function.destroy_queue_pair(old);
        self.flush_send_queue(slot);
        self.drain();
        let queue_pair = self.new_queue_pair();
        let vi = self.vi(handle)?;
        vi.reads = 0;
        match queue_pair {
            Ok(queue_pair) => vi.queue_pair = queue_pair,
            Err(code) => {
                vi.state = ViState::Error;
                return Err(code);
            }
        }
        let _ = self.function.progress();
        Ok(())
    }
}

/// Makes a VI.
///
/// # Safety
/// `attributes` is null or valid; `vi` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipCreateVi(
    nic: *mut c_void,
    attributes: Option<&ViAttributes>,
    send_cq: *mut c_void,
    receive_cq: *mut c_void,
    vi: Out<'_, *mut c_void>,
) -> Return {
    call(|| {
        let attributes = *attributes.ok_or(Return::InvalidParameter)?;
        vi.check()?;
        let handle = on_nic(nic_of(nic), |state| state.create_vi(attributes, send_cq, receive_cq))?;
        vi.write(handle.to_pointer())
    })
}

/// Destroys an idle VI whose queues are empty.
#[unsafe(no_mangle)]
pub extern "C" fn VipDestroyVi(vi: *mut c_void) -> Return {
    call_on(vi_of(vi), |state| state.destroy_vi(vi_of(vi)))
}

/// The state and attributes of a VI.
///
/// # Safety
/// All are null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipQueryVi(
    vi: *mut c_void,
    state: Out<'_, ViState>,
    attributes: Out<'_, ViAttributes>,
    send_empty: Out<'_, c_int>,
    receive_empty: Out<'_, c_int>,
) -> Return {
    call(|| {
        let known = on_nic(vi_of(vi), |nic| {
            nic.vi(vi_of(vi))?;
            nic.drain();
            nic.watch();
            let vi = nic.vi(vi_of(vi))?;
            Ok((vi.state, vi.attributes, vi.send.is_empty(), vi.receive.is_empty()))
        })?;
        state.write(known.0)?;
        attributes.write(known.1)?;
        send_empty.write(known.2.into())?;
        receive_empty.write(known.3.into())
    })
}

/// Changes the attributes of an idle VI.
///
/// # Safety
/// `attributes` is null or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn VipSetViAttributes(
    vi: *mut c_void,
    attributes: Option<&ViAttributes>,
) -> Return {
    call(|| {
        let attributes = *attributes.ok_or(Return::InvalidParameter)?;
        on_nic(vi_of(vi), |state| {
            if state.vi(vi_of(vi))?.state != ViState::Idle {
                return Err(Return::InvalidState);
            }
            let tag = state.check_attributes(&attributes)?;
            let vi = state.vi(vi_of(vi))?;
            let old = std::mem::replace(&mut vi.tag, tag);
            vi.attributes = attributes;
            state.memory.use_tag(old, false);
            state.memory.use_tag(tag, true);
            Ok(())
        })
    })
}

/// Ends a connection, or cleans up a broken one: posted descriptors complete as flushed, and the VI
/// is idle.
#[unsafe(no_mangle)]
pub extern "C" fn VipDisconnect(vi: *mut c_void) -> Return {
    call_on(vi_of(vi), |state| state.disconnect(vi_of(vi)))
}
