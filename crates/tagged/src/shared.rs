//! Receives that several endpoints share: the first endpoint that gets a matching message takes the
//! oldest one.

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
    /// `most`: maximum number of waiting receives of each kind.
    pub fn new(most: usize) -> SharedReceives {
        SharedReceives { posted: Arc::new(Mutex::new([Queue::new(), Queue::new()])), most }
    }

    /// Receives one message into `into`, from any peer of any of the endpoints. `tag`: a tag and a
    /// mask of its bits to ignore, or none. Each endpoint must then call
    /// [`Endpoint::look_at_shared`], because a message may have come before.
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

    /// Cancels the oldest receive whose token has this context, and returns the token. `None`:
    /// there is none.
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
    /// Lets messages without a receive of this endpoint's own take those of `receives`.
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

    /// The shared receive for a message that finds no receive of the endpoint's own.
    #[cold]
    pub(crate) fn take_shared(
        &mut self,
        label: &Label,
        sink: &mut impl Sink,
    ) -> Option<(Spans, Token)> {
        // Earlier messages go first: a receive may have been posted for them meanwhile.
        self.look_at_shared(sink);
        let posted = &mut self.shared.as_ref()?.posted()[usize::from(label.tagged)];
        let at = posted.find(|posted| posted.takes(label))?;
        Some(posted.take(at).into_spans())
    }
}

/// The label of a message that is not claimed.
fn waiting(arrived: &crate::receive::Arrived) -> Option<&Label> {
    arrived.claimed.is_none().then_some(&arrived.label)
}
