//! `write_arb`: the arbiter of writes to host memory (C-13, C-14; cHPP section 4.2, Fig. 12), as
//! `hardware/write_arb` builds it.
//!
//! Writes of the upload module come as beats, and records of events as a whole: they are cut into
//! beats here. Whole writes take turns, and no beat of one stands among those of another.

use bellwire_wire::ADDRESS_BITS;
use bellwire_wire::event::EVENT_BYTES;

use super::data_reorder::{BEAT_WORDS, SIZE_BITS};
use super::event_ring::EVENT_WORDS;
use super::key_window::FUNCTION_BITS;

/// Beats of a record.
const RECORD_BEATS: usize = EVENT_WORDS / BEAT_WORDS;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// The upload module offers a beat.
        upload_valid: bool = 1,
        /// It is the last of its write.
        upload_last: bool = 1,
        /// The function that the write is for.
        upload_function: u8 = FUNCTION_BITS,
        /// Global address of its first byte.
        upload_address: u64 = ADDRESS_BITS as usize,
        /// Bytes of the write.
        upload_bytes: u16 = SIZE_BITS,
        /// The bytes, each on the lane of its address.
        upload_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
        /// `event_ring` offers a record.
        event_valid: bool = 1,
        /// The function that it is for.
        event_function: u8 = FUNCTION_BITS,
        /// Its global address, a multiple of its length.
        event_address: u64 = ADDRESS_BITS as usize,
        /// The record.
        event_record: [u64; EVENT_WORDS] = 64 * EVENT_WORDS,
        /// The PCIe boundary takes a beat, if one is offered.
        out_ready: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The beat is taken.
        upload_ready: bool = 1,
        /// The record is taken: its last beat is.
        event_ready: bool = 1,
        /// A beat is offered.
        out_valid: bool = 1,
        /// It is the last of its write.
        out_last: bool = 1,
        /// The function that the write is for; zero if none is offered.
        out_function: u8 = FUNCTION_BITS,
        /// Global address of its first byte; zero if none is offered.
        out_address: u64 = ADDRESS_BITS as usize,
        /// Bytes of the write; zero if none is offered.
        out_bytes: u16 = SIZE_BITS,
        /// The bytes, each on the lane of its address; zero if none is offered.
        out_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
    }
}

/// The write that goes on: beats of it have been taken, and its last one has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Write {
    Upload,
    /// Beats of the record that were taken.
    Event(usize),
}

/// An arbiter. If both wait, that goes first which did not begin the last write; after reset, the
/// upload module does.
///
/// A beat that is taken in cycle `t` is offered to the PCIe boundary from `t + 1` on, and one is
/// taken in every cycle. So writes keep the order in which they were taken: an event that is
/// offered after the last beat of its data was taken stands behind it.
#[derive(Clone, Debug, Default)]
pub struct WriteArb {
    /// The turn is the record's.
    event_next: bool,
    write: Option<Write>,
    /// The output's register: fields of `out_`.
    output: Out,
}

impl WriteArb {
    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let has_output = !self.output.out_valid || input.out_ready;
        // Each is ready if the other one does not go before, whether it asks or not.
        let upload_goes = match self.write {
            None => !(self.event_next && input.event_valid),
            Some(write) => write == Write::Upload,
        };
        let upload_ready = has_output && upload_goes;
        let event_ready = has_output && self.write == Some(Write::Event(RECORD_BEATS - 1));
        let out = Out { upload_ready, event_ready, ..self.output };
        if !has_output {
            return out;
        }
        self.output = Out::default();
        if upload_goes && input.upload_valid {
            self.event_next = true;
            self.upload(&input);
        } else if self.write != Some(Write::Upload) && input.event_valid {
            self.event_next = false;
            self.event(&input);
        }
        out
    }

    /// A beat of the upload module is taken.
    fn upload(&mut self, input: &In) {
        self.write = (!input.upload_last).then_some(Write::Upload);
        self.output = Out {
            out_valid: true,
            out_last: input.upload_last,
            out_function: input.upload_function,
            out_address: input.upload_address,
            out_bytes: input.upload_bytes,
            out_data: input.upload_data,
            ..Out::default()
        };
    }

    /// A beat of a record is taken.
    fn event(&mut self, input: &In) {
        let beat = if let Some(Write::Event(taken)) = self.write { taken } else { 0 };
        let out_last = beat + 1 == RECORD_BEATS;
        self.write = (!out_last).then_some(Write::Event(beat + 1));
        let (beats, _) = input.event_record.as_chunks();
        self.output = Out {
            out_valid: true,
            out_last,
            out_function: input.event_function,
            out_address: input.event_address,
            out_bytes: EVENT_BYTES as u16,
            out_data: beats[beat],
            ..Out::default()
        };
    }
}

#[cfg(test)]
mod tests;
