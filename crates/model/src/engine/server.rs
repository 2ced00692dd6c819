//! A unit that serves one request after another: wires, a bus, a memory channel, a processor.

use crate::units::{Span, Time};

/// A unit that serves one request at a time, in the order of the calls.
///
/// The duration of a request is known when it comes. So the end of its service is computed at once,
/// and nothing waits for an event:
///
/// ```
/// use bellwire_model::engine::Server;
/// use bellwire_model::units::{Span, Time};
///
/// let mut wires = Server::default();
/// let first = wires.reserve(Time::ZERO, Span::from_ns(10));
/// let second = wires.reserve(Time::from_ps(4_000), Span::from_ns(3));
/// assert_eq!((first.begins, first.ends), (Time::ZERO, Time::from_ps(10_000)));
/// // The second waits 6 ns for the first.
/// assert_eq!((second.begins, second.ends), (Time::from_ps(10_000), Time::from_ps(13_000)));
/// assert_eq!((wires.busy(), wires.waited()), (Span::from_ns(13), Span::from_ns(6)));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Server {
    free_at: Time,
    busy: Span,
    waited: Span,
}

/// The time for which a request has a [`Server`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Service {
    /// When it begins; the request waits until then.
    pub begins: Time,
    /// When it ends, and the server is free again.
    pub ends: Time,
}

impl Server {
    /// Serves a request that comes at `now`, for `duration`, behind all earlier ones. `now` may be
    /// later than the present, if the request is known early.
    #[inline]
    pub fn reserve(&mut self, now: Time, duration: Span) -> Service {
        self.reserve_after(now, Span::ZERO, duration)
    }

    /// The same, with a `pause` of the server before the service. The request waits for it.
    #[inline]
    pub fn reserve_after(&mut self, now: Time, pause: Span, duration: Span) -> Service {
        let begins = now.max(self.free_at) + pause;
        let ends = begins + duration;
        self.free_at = ends;
        self.busy += duration;
        self.waited += begins - now;
        Service { begins, ends }
    }

    /// Is busy from `now` until `until` beside what it serves, such as with a wait for an answer.
    pub fn hold(&mut self, now: Time, until: Time) {
        self.close_until(until);
        self.busy += until - now;
    }

    /// Begins no service before `time`, and is not busy until then, such as while a link trains.
    pub fn close_until(&mut self, time: Time) {
        self.free_at = self.free_at.max(time);
    }

    /// When all requests so far are served.
    #[inline]
    pub fn free_at(&self) -> Time {
        self.free_at
    }

    /// Whether a request at `now` would not wait.
    #[inline]
    pub fn is_free(&self, now: Time) -> bool {
        self.free_at <= now
    }

    /// Total duration of the requests so far, including the part that is still to come.
    pub fn busy(&self) -> Span {
        self.busy
    }

    /// How long requests waited for the server in total.
    pub fn waited(&self) -> Span {
        self.waited
    }
}
