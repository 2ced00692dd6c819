//! Completion queues.

use crate::abi::{self, CqEx, Opaque};
use crate::channel::Channel;
use crate::context::ContextObject;
use crate::cq_ex;
use crate::errno;
use crate::event::Acknowledged;
use bellwire_rdma::{CqId, Refusal, WorkCompletion};
use std::cell::Cell;
use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// A completion queue; all are extended ones.
#[repr(C)]
pub struct Cq {
    pub abi: CqEx,
    pub id: Cell<CqId>,
    /// The completion that the program reads.
    pub current: Cell<Option<WorkCompletion>>,
    pub events: Acknowledged,
    pub async_events: Acknowledged,
    /// Polls in a row that found nothing. It is outside the lock: a thread that yields with the
    /// lock held would block other threads. Relaxed: a lost count only delays a yield.
    empty_polls: AtomicU32,
}

/// Empty polls before the first yield: with more processes than cores, the awaited peer needs the
/// processor.
const POLLS_BEFORE_YIELD: u32 = 4000;
/// A yield that takes longer was used by another process.
const CONTENDED: Duration = Duration::from_micros(100);
/// Longest sleep of a poll.
const DOZE: Duration = Duration::from_millis(1);
/// Empty polls between later yields.
const YIELD_EVERY: u32 = 16;

impl Cq {
    /// A queue that is not known to the adapter yet: its address is its number there.
    fn new(
        context: &abi::Context,
        depth: c_int,
        cq_context: Opaque,
        channel: Option<&Channel>,
        id: CqId,
    ) -> Cq {
        let cq = abi::Cq {
            context,
            channel: channel.map_or(std::ptr::null(), std::ptr::from_ref),
            cq_context,
            handle: 0,
            cqe: AtomicI32::new(depth),
            mutex: abi::Mutex::NEW,
            cond: abi::Cond::NEW,
            comp_events_completed: AtomicU32::new(0),
            async_events_completed: AtomicU32::new(0),
        };
        Cq {
            abi: cq_ex::table(cq),
            id: Cell::new(id),
            current: Cell::new(None),
            events: Acknowledged::default(),
            async_events: Acknowledged::default(),
            empty_polls: AtomicU32::new(0),
        }
    }

    /// A poll has found something, or nothing. `true`: others had the processor since, so the poll
    /// looks again. What came meanwhile must not be news after the program's next step.
    #[inline]
    pub fn polled(&self, found: bool) -> bool {
        if found {
            self.empty_polls.store(0, Ordering::Relaxed);
            return false;
        }
        let polls = self.empty_polls.load(Ordering::Relaxed).wrapping_add(1);
        self.empty_polls.store(polls, Ordering::Relaxed);
        let yields = polls >= POLLS_BEFORE_YIELD && polls.is_multiple_of(YIELD_EVERY);
        if yields {
            self.yields();
        }
        yields
    }

    /// Lets others have the processor. If they take it, the next arrival is waited for in the
    /// kernel: a process that sleeps gets the processor back before one that has yielded.
    #[cold]
    fn yields(&self) {
        let started = Instant::now();
        std::thread::yield_now();
        if started.elapsed() > CONTENDED {
            self.context().doze(DOZE);
        }
    }

    pub fn context(&self) -> &'static ContextObject {
        ContextObject::of(self.abi.cq.context)
    }

    pub fn channel(&self) -> Option<&'static Channel> {
        // SAFETY: null, or a channel that lives as long as its queues:
        // ibv_destroy_comp_channel(3).
        unsafe { self.abi.cq.channel.as_ref() }
    }

    /// The number of the queue in events.
    fn object(&self) -> usize {
        std::ptr::from_ref(self) as usize
    }
}

/// A completion queue, or the error.
pub fn create(
    context: &abi::Context,
    depth: c_int,
    cq_context: Opaque,
    channel: Option<&Channel>,
    vector: u32,
) -> Result<*mut Cq, Refusal> {
    let entries = usize::try_from(depth).ok().filter(|&depth| depth > 0);
    let entries = entries.ok_or(Refusal::Invalid("the depth of a completion queue"))?;
    if vector != 0 {
        return Err(Refusal::Invalid("there is one completion vector"));
    }
    let object = ContextObject::of(context);
    let place = Box::new(std::mem::MaybeUninit::<Cq>::uninit());
    let number = place.as_ptr() as usize;
    let queue = channel.map(|channel| channel.queue.clone());
    let id = object.lock().create_queue(entries, queue, number)?;
    channel.into_iter().for_each(|channel| {
        channel.count(1);
    });
    let cq = Box::write(place, Cq::new(context, depth, cq_context, channel, id));
    Ok(Box::into_raw(cq))
}

/// Ends a queue. Waits for the acknowledgement of its events.
pub fn destroy(cq: *mut Cq) -> Result<(), Refusal> {
    // SAFETY: C gives back a queue of `create`.
    let object = unsafe { cq.as_ref() }.ok_or(Refusal::Invalid("no completion queue"))?;
    object.context().lock().destroy_queue(object.id.get())?;
    let number = object.object();
    if let Some(channel) = object.channel() {
        channel.queue.remove(|&cq| cq == number);
        channel.count(-1);
    }
    object.context().forget_events(number);
    object.events.wait();
    object.async_events.wait();
    // SAFETY: it was made by `Box::into_raw`.
    drop(unsafe { Box::from_raw(cq) });
    Ok(())
}

/// The queue's next completion raises an event.
pub extern "C" fn req_notify(cq: &Cq, solicited_only: c_int) -> c_int {
    let context = cq.context();
    let result = context.lock().arm(cq.id.get(), solicited_only != 0);
    // The program may sleep at the descriptor, without any further call.
    context.may_sleep();
    errno::answer("ibv_req_notify_cq", result)
}
