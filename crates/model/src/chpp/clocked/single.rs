//! One operation between two idle nodes, as in the experiments of the event-driven machine.

use bellwire_wire::primitive::Primitive;

use super::marks::explain;
use super::{Interface, Machine};
use crate::chpp::experiments::Kind;
use crate::chpp::experiments::single::{described, endpoint, fill, pattern};
use crate::chpp::host::RingKind;
use crate::chpp::journal::Explanation;
use crate::units::{Span, Time};

/// Longer than an operation of no bytes takes, or the set-up of all interfaces.
const PATIENCE: Span = Span::from_ns(200_000);
/// More than a byte takes.
const FOR_A_BYTE: Span = Span::from_ns(2);

/// Bytes of a read of a descriptor, at most.
const READ_BYTES: usize = 128;

/// Runs one operation of `kind` from node 0 to node 1 of a machine that does nothing else. Says
/// where the time from the processor's start to the receiver's event went. The bytes must have
/// arrived.
///
/// # Errors
/// A sentence, if the operation does not end, or not as it should.
pub fn single<I: Interface>(
    machine: &mut Machine<I>,
    kind: Kind,
    bytes: u64,
) -> Result<Explanation, String> {
    let failed = |what: &str| format!("{} of {bytes} bytes: {what}", kind.name());
    let rests = |machine: &mut Machine<I>| {
        let until = machine.now() + PATIENCE;
        while machine.is_pending() && machine.step(until) {}
        machine.is_pending()
    };
    if machine.nodes.len() < 2 {
        return Err(failed("it goes from one node to another; give the crossbar at least 2 ports"));
    }
    if rests(machine) {
        return Err(failed("the machine does not come to rest before"));
    }
    let (from, to) = (endpoint(0), endpoint(1));
    [from, to].into_iter().for_each(|end| machine.consumes(end, true));
    let (near, far) = (machine.window(0, 0)[1], machine.window(1, 0)[1]);
    let (source, target) = if kind == Kind::Get { (far, near) } else { (near, far) };
    let no_room = || failed("there is no room in a window");
    fill(machine.memory_mut(source, bytes as usize).ok_or_else(no_room)?);
    machine.memory_mut(target, bytes as usize).ok_or_else(no_room)?.fill(0);
    let mut inside = Vec::new();
    if kind == Kind::NapImmediate {
        inside.extend((0..bytes as usize).map(pattern));
    }
    let keys = (machine.key(from), machine.key(to));
    machine.mark();
    let mut reads = 0;
    let posted = described(kind, (from, to), (near, far), (bytes, &inside), keys, |descriptor| {
        reads = descriptor.buffer_len().div_ceil(READ_BYTES);
        machine.post(0, 0, descriptor)
    });
    let started = posted.map_err(|error| failed(&error.to_string()))?;
    let mut ended: Option<Time> = None;
    let until = started + PATIENCE + FOR_A_BYTE * bytes;
    while machine.is_pending() && machine.step(until) {
        while let Some(told) = machine.next_told() {
            if told.ring == RingKind::Send {
                continue;
            }
            let is_nap = told.event.primitive == Primitive::Nap;
            let at = if is_nap { told.event.address } else { target };
            let came = machine.memory(at, bytes as usize).unwrap_or_default();
            if !came.iter().copied().eq((0..bytes as usize).map(pattern)) {
                return Err(failed("other bytes have arrived"));
            }
            if ended.replace(machine.now()).is_some() {
                return Err(failed("two events have come"));
            }
        }
    }
    let ended = ended.ok_or_else(|| failed("no event has come"))?;
    if let Some(fault) = machine.fault() {
        return Err(failed(&fault));
    }
    let marks = machine.marks.take().unwrap_or_default();
    let [near, far, ..] = &marks[..] else { return Err(failed("there is no second node")) };
    let processor = machine.nodes[0].host.cpu_start;
    Ok(explain(kind, [near, far], (started, ended), (processor, reads)))
}
