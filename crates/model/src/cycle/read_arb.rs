//! `read_arb`: the arbiter of reads of host memory (C-34, C-36; cHPP sections 4.1, 4.2 and 5.1), as
//! `hardware/read_arb` builds it.
//!
//! Reads of descriptors, of data and of slot addresses share one port and one allocator of tags.
//! Requesters take turns, and each completion goes to the requester whose read has its tag.

use bellwire_wire::ADDRESS_BITS;

use super::data_reorder::SIZE_BITS;
use super::key_window::FUNCTION_BITS;
use super::tag_alloc::TAG_BITS;

/// Requesters, at most.
pub const REQUESTERS: usize = 4;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// By requester: it asks for a read.
        ask_valid: [bool; REQUESTERS] = REQUESTERS,
        /// The function that it is for.
        ask_function: [u8; REQUESTERS] = REQUESTERS * FUNCTION_BITS,
        /// Where it begins.
        ask_address: [u64; REQUESTERS] = REQUESTERS * ADDRESS_BITS as usize,
        /// Its bytes.
        ask_bytes: [u16; REQUESTERS] = REQUESTERS * SIZE_BITS,
        /// The allocator offers a tag.
        tag_valid: bool = 1,
        /// That tag.
        tag: u8 = TAG_BITS,
        /// The PCIe boundary takes the read at the output, if there is one.
        read_ready: bool = 1,
        /// A beat of a completion comes.
        in_valid: bool = 1,
        /// It is the completion's last one.
        in_last: bool = 1,
        /// The completion's tag; counts with its first beat.
        in_tag: u8 = TAG_BITS,
        /// By requester: what came for it in the cycle before was the last of a read, or failed.
        free_valid: [bool; REQUESTERS] = REQUESTERS,
        /// The allocator has freed a tag, because its completions did not come in time.
        lost_valid: bool = 1,
        /// That tag.
        lost_tag: u8 = TAG_BITS,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// By requester: a read that it asks for is taken, under the tag that is offered.
        ask_ready: [bool; REQUESTERS] = REQUESTERS,
        /// The tag is taken, if one is offered.
        tag_ready: bool = 1,
        /// A read is offered to the PCIe boundary.
        read_valid: bool = 1,
        /// The function that it is for; zero if none is offered.
        read_function: u8 = FUNCTION_BITS,
        /// Where it begins; zero if none is offered.
        read_address: u64 = ADDRESS_BITS as usize,
        /// Its bytes; zero if none is offered.
        read_bytes: u16 = SIZE_BITS,
        /// Its tag; zero if none is offered.
        read_tag: u8 = TAG_BITS,
        /// By requester: the beat is of a completion for it.
        own_valid: [bool; REQUESTERS] = REQUESTERS,
        /// By requester: the tag that is lost is of a read of it.
        own_lost: [bool; REQUESTERS] = REQUESTERS,
        /// The completion that ended in the cycle before was for nobody.
        unexpected: bool = 1,
        /// A tag comes back to the allocator.
        release_valid: bool = 1,
        /// That tag; zero if none comes back.
        release_tag: u8 = TAG_BITS,
    }
}

/// A read at the output.
#[derive(Clone, Copy, Debug)]
struct Read {
    function: u8,
    address: u64,
    bytes: u16,
    tag: u8,
}

/// A completion: its tag, for whom it is, and whether that read had the tag all the time.
#[derive(Clone, Copy, Debug)]
struct Piece {
    tag: u8,
    owner: Option<usize>,
    is_held: bool,
}

/// An arbiter. The requester behind the one that was served last goes first; after reset,
/// requester 0 does.
///
/// A read that is taken in cycle `t` is offered to the PCIe boundary from `t + 1` on. Completions
/// and lost tags are told in the cycle in which they come.
#[derive(Clone, Debug)]
pub struct ReadArb {
    requesters: usize,
    /// The requester whose turn is next.
    next: usize,
    read: Option<Read>,
    /// By tag: whose read has it.
    owners: Vec<Option<usize>>,
    /// The completion of which beats have come, and its last one has not.
    piece: Option<Piece>,
    /// The completion that ended in the cycle before.
    ended: Option<Piece>,
}

impl ReadArb {
    /// An arbiter of this many requesters and tags.
    ///
    /// # Panics
    /// Unless there are 1 to 4 requesters and 1 to 256 tags.
    pub fn new(requesters: usize, tags: usize) -> ReadArb {
        assert!((1..=REQUESTERS).contains(&requesters), "1 to {REQUESTERS} requesters");
        assert!((1..=1 << TAG_BITS).contains(&tags), "1 to 256 tags");
        let owners = vec![None; tags.next_power_of_two().max(2)];
        ReadArb { requesters, next: 0, read: None, owners, piece: None, ended: None }
    }

    /// Tags of reads that wait for completions.
    pub fn in_use(&self) -> usize {
        self.owners.iter().flatten().count()
    }

    /// One cycle; tags are below those that there are, rounded up to a power of two.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let mut out = Out { read_valid: self.read.is_some(), ..Out::default() };
        if let Some(Read { function, address, bytes, tag }) = self.read {
            (out.read_function, out.read_tag) = (function, tag);
            (out.read_address, out.read_bytes) = (address, bytes);
        }
        let freed = self.release(&input, &mut out);
        self.complete(&input, freed, &mut out);
        let taken = self.arbitrate(&input, &mut out);

        if let Some(tag) = freed {
            self.owners[usize::from(tag)] = None;
        }
        if input.lost_valid {
            self.owners[usize::from(input.lost_tag)] = None;
        }
        if let Some(owner) = taken {
            self.next = owner + 1;
            self.owners[usize::from(input.tag)] = Some(owner);
            let (address, bytes) = (input.ask_address[owner], input.ask_bytes[owner]);
            let function = input.ask_function[owner];
            self.read = Some(Read { function, address, bytes, tag: input.tag });
        } else if input.read_ready {
            self.read = None;
        }
        out
    }

    /// The tag of a read that has ended. It comes back, unless the allocator has just freed it.
    fn release(&mut self, input: &In, out: &mut Out) -> Option<u8> {
        let ended = self.ended.take();
        out.unexpected = ended.is_some_and(|piece| piece.owner.is_none());
        let is_free = |piece: &Piece| {
            piece.is_held && piece.owner.is_some_and(|owner| input.free_valid[owner])
        };
        let freed = ended.filter(is_free).map(|piece| piece.tag);
        let lost = input.lost_valid.then_some(input.lost_tag);
        if let Some(tag) = freed.filter(|_| lost != freed) {
            (out.release_valid, out.release_tag) = (true, tag);
        }
        // Of a read that has ended, nobody is told that its tag is lost.
        if let Some(tag) = lost.filter(|_| lost != freed)
            && let Some(owner) = self.owners[usize::from(tag)]
        {
            out.own_lost[owner] = true;
        }
        freed
    }

    /// A beat of a completion. All beats go where the first one went, also if the tag is lost and
    /// used again between them.
    fn complete(&mut self, input: &In, freed: Option<u8>, out: &mut Out) {
        let begins = || {
            let owner = self.owners[usize::from(input.in_tag)];
            Piece { tag: input.in_tag, owner, is_held: owner.is_some() }
        };
        let piece = self.piece.or_else(|| input.in_valid.then(begins));
        let Some(mut piece) = piece else { return };
        if freed == Some(piece.tag) || (input.lost_valid && input.lost_tag == piece.tag) {
            piece.is_held = false;
        }
        if let Some(owner) = piece.owner.filter(|_| input.in_valid) {
            out.own_valid[owner] = true;
        }
        let ends = input.in_valid && input.in_last;
        (self.piece, self.ended) = if ends { (None, Some(piece)) } else { (Some(piece), None) };
    }

    /// Who is served. A requester is ready if no other one before it asks, whether it asks or not.
    fn arbitrate(&self, input: &In, out: &mut Out) -> Option<usize> {
        // Two reads under one tag could not be told apart (C-36).
        let is_unused = self.owners[usize::from(input.tag)].is_none();
        let has_room = (self.read.is_none() || input.read_ready) && is_unused;
        let mut taken = None;
        for step in 0..self.requesters {
            let requester = (self.next + step) % self.requesters;
            let is_first = taken.is_none();
            out.ask_ready[requester] = is_first && has_room && input.tag_valid;
            if is_first && input.ask_valid[requester] {
                taken = Some(requester);
            }
        }
        out.tag_ready = taken.is_some() && has_room;
        taken.filter(|_| out.tag_ready && input.tag_valid)
    }
}

#[cfg(test)]
mod tests;
