//! Receives that several endpoints share: whichever gets a matching message first, takes the oldest.

use crate::endpoint::Endpoint;
use crate::queue::Queue;
use crate::receive::{Label, Posted, Taken};
use crate::{Refusal, Sink, Spans, Token};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Receives for all endpoints that [share](Endpoint::share) them. Clones are the same receives.
#[derive(Clone)]
pub struct SharedReceives {
    /// Without tags, and with.
    posted: Arc<Mutex<[Queue<Posted>; 2]>>,
    most: usize,
}

impl SharedReceives {
    /// At most `most` of each kind can wait.
    pub fn new(most: usize) -> SharedReceives {
        SharedReceives { posted: Arc::new(Mutex::new([Queue::new(), Queue::new()])), most }
    }

    /// Receives one message into `into`, from any peer of any of the endpoints; with a tag, and the bits of it that do not matter, or without. Each of the endpoints
    /// has to [look](Endpoint::look_at_shared) at it then: a message may have come before.
    ///
    /// # Errors
    /// [`Refusal::Again`] if too many wait already.
    pub fn receive(
        &self,
        tag: Option<(u64, u64)>,
        into: Spans,
        token: Token,
    ) -> Result<(), Refusal> {
        let posted = &mut self.posted()[usize::from(tag.is_some())];
        if posted.len() >= self.most {
            return Err(Refusal::Again);
        }
        posted.push(Posted::from_anybody(tag, into, token));
        Ok(())
    }

    /// Takes the oldest receive back whose token has this context: returns the token. `None`: there is none.
    pub fn cancel(&self, context: u64) -> Option<Token> {
        let sides = &mut *self.posted();
        sides.iter_mut().rev().find_map(|posted| {
            let at = posted.find(|posted| posted.token.context == context)?;
            Some(posted.take(at).token)
        })
    }

    fn posted(&self) -> MutexGuard<'_, [Queue<Posted>; 2]> {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Endpoint {
    /// Messages for which this endpoint has no receive of its own go to those of `receives`.
    pub fn share(&mut self, receives: &SharedReceives) {
        self.shared = Some(receives.clone());
    }

    /// Gives messages that have come to receives that were posted since.
    pub fn look_at_shared(&mut self, sink: &mut impl Sink) {
        let Some(shared) = self.shared.clone() else { return };
        for side in 0..2 {
            loop {
                let unexpected = &mut self.matching[side].unexpected;
                if unexpected.len() == 0 {
                    break;
                }
                let (arrived, into, token) = {
                    let posted = &mut shared.posted()[side];
                    let for_it = |label: &Label| posted.find(|posted| posted.takes(label));
                    let wanted = |arrived: &_| waiting(arrived).and_then(for_it).is_some();
                    let Some(at) = unexpected.find(wanted) else { break };
                    let arrived = unexpected.take(at);
                    let at = for_it(&arrived.label).expect("it was found");
                    let (into, token) = posted.take(at).into_spans();
                    (arrived, into, token)
                };
                self.hand_over(arrived, Taken { into, token, many: None }, sink);
            }
        }
    }

    /// The shared receive that a message goes to for which there is none of the endpoint's own.
    #[cold]
    pub(crate) fn take_shared(
        &mut self,
        label: &Label,
        sink: &mut impl Sink,
    ) -> Option<(Spans, Token)> {
        // What came before goes before, if it was posted for it in the meantime.
        self.look_at_shared(sink);
        let posted = &mut self.shared.as_ref()?.posted()[usize::from(label.tagged)];
        let at = posted.find(|posted| posted.takes(label))?;
        Some(posted.take(at).into_spans())
    }
}

/// What a message says that nobody has claimed.
fn waiting(arrived: &crate::receive::Arrived) -> Option<&Label> {
    arrived.claimed.is_none().then_some(&arrived.label)
}
