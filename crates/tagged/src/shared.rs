//! Receives that several endpoints share: the first endpoint that gets a matching message takes the
//! oldest one.

use crate::completion::{PostError, Token};
use crate::envelope::Envelope;
use crate::matching::{MatchCriteria, Matched, Posted, Target, Unexpected};
use crate::memory::Spans;
use crate::queue::Queue;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Receives for all endpoints that [share](crate::Endpoint::share) them. Clones are the same
/// receives.
///
/// ```
/// use bellwire_tagged::{SharedReceives, Span, Token};
///
/// let mut buffer = [0; 64];
/// // SAFETY: the buffer outlives the receive, which is cancelled below.
/// let into = unsafe { Span::new(buffer.as_mut_ptr(), buffer.len()) };
/// let receives = SharedReceives::new(16);
/// let token = Token { context: 1, note: 0 };
/// receives.receive(Some((7, 0)), into.into(), token).unwrap();
/// assert_eq!(receives.cancel(1), Some(token));
/// ```
#[must_use]
#[derive(Clone)]
pub struct SharedReceives {
    /// Without tags, and with.
    posted: Arc<Mutex<[Queue<Posted>; 2]>>,
    max_posted: usize,
}

impl SharedReceives {
    /// `max_posted`: maximum number of waiting receives of each kind.
    pub fn new(max_posted: usize) -> SharedReceives {
        let posted = Arc::new(Mutex::new([Queue::new(), Queue::new()]));
        SharedReceives { posted, max_posted }
    }

    /// Receives one message into `into`, from any peer of any of the endpoints. `tag`: a tag and a
    /// mask of its bits to ignore, or none. Each endpoint must then call
    /// [`crate::Endpoint::match_shared`], because a message may have come before.
    ///
    /// # Errors
    /// [`PostError::Again`] if too many wait already.
    pub fn receive(
        &self,
        tag: Option<(u64, u64)>,
        into: Spans,
        token: Token,
    ) -> Result<(), PostError> {
        let posted = &mut self.posted()[usize::from(tag.is_some())];
        if posted.len() >= self.max_posted {
            return Err(PostError::Again);
        }
        let criteria = MatchCriteria { source: None, tag };
        posted.push(Posted::new(criteria, Target::Spans(into), token));
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

    /// Removes the oldest receive that accepts a message.
    pub(crate) fn take_posted(&self, envelope: &Envelope) -> Option<Matched> {
        let posted = &mut self.posted()[usize::from(envelope.tagged)];
        let at = posted.find(|posted| posted.accepts(envelope.tag, envelope.peer))?;
        Some(posted.take(at).into_matched())
    }

    /// Removes the oldest message that is not claimed and that a receive accepts, and the oldest
    /// such receive.
    pub(crate) fn take_unexpected(
        &self,
        tagged: bool,
        unexpected: &mut Queue<Unexpected>,
    ) -> Option<(Unexpected, Matched)> {
        if unexpected.len() == 0 {
            return None;
        }
        let posted = &mut self.posted()[usize::from(tagged)];
        let accepting = |message: &Unexpected| {
            let (is_free, envelope) = (message.claimed.is_none(), &message.envelope);
            posted.find(|posted| is_free && posted.accepts(envelope.tag, envelope.peer))
        };
        let at = unexpected.find(|message| accepting(message).is_some())?;
        let message = unexpected.take(at);
        let at = accepting(&message).expect("it was found");
        Some((message, posted.take(at).into_matched()))
    }

    fn posted(&self) -> MutexGuard<'_, [Queue<Posted>; 2]> {
        self.posted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
