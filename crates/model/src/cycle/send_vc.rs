//! `send_vc`: the sender's virtual channels of the SMP link (S-14, S-15), as `hardware/send_vc`
//! builds it.
//!
//! The header of a TLP tells its length, so a packet can leave before all of it has come. It begins
//! if its credits are there, and if the replay buffer has room for all of it.

use bellwire_wire::link::DW_BYTES;
use bellwire_wire::link::tlp::{LENGTH_BYTE, MAX_PAYLOAD_DW, OVERHEAD_BYTES, Tlp};

use super::credit_gate::DATA_BITS;
use super::line::{SYMBOLS, bytes_of};
use super::replay_buf::BEAT_WORDS;
use super::stream_fifo::StreamFifo;
use crate::smp::transport::CHANNELS;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// A beat of a TLP is offered, by channel.
        in_valid: [bool; CHANNELS] = CHANNELS,
        /// It is the TLP's last one.
        in_last: [bool; CHANNELS] = CHANNELS,
        /// The beat.
        in_data: [[u64; BEAT_WORDS]; CHANNELS] = CHANNELS * 64 * BEAT_WORDS,
        /// The channel is up, and the credits of its packet in front are there.
        allowed: [bool; CHANNELS] = CHANNELS,
        /// Beats that can enter the replay buffer.
        room: u16 = 16,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The offered beat is taken.
        in_ready: [bool; CHANNELS] = CHANNELS,
        /// Data credits of the packet that could begin to leave; zero if there is none.
        cost: [u16; CHANNELS] = CHANNELS * DATA_BITS,
        /// The channel's packet begins to leave, and takes its credits.
        begins: [bool; CHANNELS] = CHANNELS,
        /// The packet that leaves is not what its header says: its type, its channel, its length.
        malformed: [bool; CHANNELS] = CHANNELS,
        /// A beat leaves.
        out_valid: bool = 1,
        /// It is its packet's last one.
        out_last: bool = 1,
        /// The beat; zero if none leaves.
        out_data: [u64; BEAT_WORDS] = 64 * BEAT_WORDS,
    }
}

#[derive(Clone, Copy, Debug)]
struct Beat {
    data: [u64; BEAT_WORDS],
    last: bool,
}

/// The packet that leaves.
#[derive(Clone, Copy, Debug)]
struct Leaving {
    channel: usize,
    /// Beats that have not left.
    beats: u16,
}

/// Queues of `depth` beats, and a turn.
///
/// The channels take turns, packet by packet. One without credits is passed over. One whose packet
/// finds no room in the replay buffer keeps its turn: short packets of the other one could fill
/// that buffer for ever.
#[derive(Clone, Debug)]
pub struct SendVc {
    queues: [StreamFifo<Beat>; CHANNELS],
    /// The channel whose turn is next.
    next: usize,
    leaving: Option<Leaving>,
}

impl SendVc {
    /// Empty queues.
    pub fn new(depth: usize) -> SendVc {
        let queues = [(); CHANNELS].map(|()| StreamFifo::new(depth));
        SendVc { queues, next: 0, leaving: None }
    }

    /// The channel has no packet within, and one waits to begin; with the data credits that it
    /// takes.
    #[inline]
    pub fn costs(&self) -> [u16; CHANNELS] {
        std::array::from_fn(|channel| {
            self.waiting(channel).map_or(0, |beat| length(beat).div_ceil(4))
        })
    }

    /// The first beat of the packet that can begin, if none is leaving.
    fn waiting(&self, channel: usize) -> Option<Beat> {
        self.queues[channel].offered().copied().filter(|_| self.leaving.is_none())
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let mut out = Out { cost: self.costs(), ..Out::default() };
        for (ready, queue) in out.in_ready.iter_mut().zip(&self.queues) {
            *ready = queue.in_ready();
        }
        let turns = (0..CHANNELS).map(|step| (self.next + step) % CHANNELS);
        let may_go = |channel: &usize| input.allowed[*channel] && self.waiting(*channel).is_some();
        let turn = turns.into_iter().find(may_go);
        if let Some(channel) = turn {
            let first = self.waiting(channel).expect("a packet waits");
            let beats = beats_of(length(first));
            if beats <= input.room {
                out.begins[channel] = true;
                out.malformed[channel] = !is_of(channel, first);
                self.next = (channel + 1) % CHANNELS;
                self.leaving = Some(Leaving { channel, beats });
            }
        }
        let mut leaves = None;
        if let Some(Leaving { channel, beats }) = &mut self.leaving
            && let Some(beat) = self.queues[*channel].offered()
        {
            leaves = Some(*channel);
            *beats -= 1;
            (out.out_valid, out.out_last, out.out_data) = (true, *beats == 0, beat.data);
            out.malformed[*channel] |= beat.last != out.out_last;
        }
        self.leaving = self.leaving.filter(|leaving| leaving.beats > 0);
        for (channel, queue) in self.queues.iter_mut().enumerate() {
            let (data, last) = (input.in_data[channel], input.in_last[channel]);
            let beat = input.in_valid[channel].then_some(Beat { data, last });
            queue.clock(beat, leaves == Some(channel));
        }
        out
    }
}

/// DWs of payload that the header in a TLP's first beat announces.
fn length(first: Beat) -> u16 {
    let bytes = bytes_of(first.data);
    u16::from(bytes[LENGTH_BYTE - 1] & 3) << 8 | u16::from(bytes[LENGTH_BYTE])
}

/// Beats of a TLP with this much payload.
fn beats_of(payload_dws: u16) -> u16 {
    (usize::from(payload_dws) * DW_BYTES + OVERHEAD_BYTES).div_ceil(SYMBOLS) as u16
}

/// Whether the first beat begins a posted write of this channel that is not too long.
fn is_of(channel: usize, first: Beat) -> bool {
    Tlp::glance_channel(&bytes_of(first.data)) == Some(channel as u8)
        && usize::from(length(first)) <= MAX_PAYLOAD_DW
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// The beats of a TLP of this channel.
    fn tlp(channel: u8, payload_dws: usize) -> Vec<Beat> {
        let payload = vec![0x5a; payload_dws * DW_BYTES];
        let tlp = Tlp { channel, requester: 0, tag: 0, address: 9, payload: &payload };
        let mut bytes = vec![0; tlp.buffer_len()];
        tlp.emit(&mut bytes).unwrap();
        let one = |chunk: &[u8]| {
            let mut beat = super::super::line::Beat::default();
            beat.bytes[..chunk.len()].copy_from_slice(chunk);
            Beat { data: beat.words(), last: false }
        };
        let mut beats: Vec<Beat> = bytes.chunks(SYMBOLS).map(one).collect();
        beats.last_mut().unwrap().last = true;
        beats
    }

    struct Driven {
        send: SendVc,
        waits: [VecDeque<Beat>; CHANNELS],
    }

    impl Driven {
        fn new(depth: usize) -> Driven {
            Driven { send: SendVc::new(depth), waits: Default::default() }
        }

        /// A cycle in which all that waits is offered.
        fn cycle(&mut self, allowed: [bool; CHANNELS], room: u16) -> Out {
            let mut input = In { allowed, room, ..In::default() };
            for channel in 0..CHANNELS {
                if let Some(beat) = self.waits[channel].front() {
                    input.in_valid[channel] = true;
                    (input.in_data[channel], input.in_last[channel]) = (beat.data, beat.last);
                }
            }
            let out = self.send.cycle(input);
            for channel in 0..CHANNELS {
                if input.in_valid[channel] && out.in_ready[channel] {
                    self.waits[channel].pop_front();
                }
            }
            out
        }

        /// In each of the next cycles: the channel that begins, whether a beat leaves, and whether
        /// it is the last one.
        fn run(&mut self, cycles: usize, room: u16) -> Vec<(Option<usize>, bool, bool)> {
            let all = (0..cycles).map(|_| self.cycle([true; CHANNELS], room));
            all.map(|out| (out.begins.iter().position(|&it| it), out.out_valid, out.out_last))
                .collect()
        }
    }

    /// A packet leaves two cycles after its first beat has come, and the channels take turns.
    /// Between two packets no cycle is lost.
    // shows: S-14
    #[test]
    fn channels_take_turns() {
        let mut driven = Driven::new(34);
        for _ in 0..2 {
            driven.waits[0].extend(tlp(0, 3));
            driven.waits[1].extend(tlp(1, 5));
        }
        let none = (None, false, false);
        let (goes, ends) = ((None, true, false), (None, true, true));
        let (zero, one) = ((Some(0), true, false), (Some(1), true, false));
        let all = [none, none, zero, ends, one, goes, ends, zero, ends, one, goes, ends, none];
        assert_eq!(driven.run(13, 34), all);
    }

    /// The cost and the beats of packets of each length. A packet begins if all of it has room.
    #[test]
    fn a_packet_begins_if_all_of_it_has_room() {
        for payload in 0..=MAX_PAYLOAD_DW {
            let mut driven = Driven::new(34);
            let beats = tlp(0, payload);
            let count = beats.len() as u16;
            driven.waits[0].extend(beats);
            for _ in 0..40 {
                let out = driven.cycle([true; CHANNELS], count - 1);
                assert!(!out.out_valid && out.begins == [false; CHANNELS]);
            }
            let out = driven.cycle([false, true], count);
            assert_eq!((out.out_valid, out.cost), (false, [payload.div_ceil(4) as u16, 0]));
            let left = driven.run(count.into(), count);
            assert!(left.iter().all(|&(_, leaves, _)| leaves), "{payload}");
            assert_eq!(left.iter().position(|&(.., last)| last), Some(usize::from(count) - 1));
        }
    }

    /// A channel without credits is passed over. One without room keeps its turn.
    // shows: S-14, S-17
    #[test]
    fn a_channel_without_credits_is_passed_over() {
        let mut driven = Driven::new(34);
        driven.waits[0].extend(tlp(0, 8));
        driven.waits[1].extend(tlp(1, 0));
        driven.waits[1].extend(tlp(1, 0));
        for _ in 0..3 {
            driven.cycle([false; CHANNELS], 34);
        }
        let begun = driven.cycle([false, true], 34);
        assert_eq!(begun.begins, [false, true]);
        driven.cycle([false, true], 34);
        assert_eq!(driven.cycle([true; CHANNELS], 3).begins, [false; CHANNELS]);
        assert_eq!(driven.cycle([true; CHANNELS], 4).begins, [true, false]);
    }

    /// A packet whose header names another channel, another type or another length is told of. Its
    /// header says where it ends.
    #[test]
    fn a_packet_that_is_not_what_its_header_says_is_told_of() {
        let malformed = |change: fn(&mut Vec<Beat>)| {
            let mut driven = Driven::new(34);
            let mut beats = tlp(1, 8);
            change(&mut beats);
            driven.waits[1].extend(beats);
            let outs = [(); 8].map(|()| driven.cycle([true; CHANNELS], 300));
            let ends = outs.iter().position(|out| out.out_last);
            (outs.map(|out| out.malformed[1]).iter().position(|&is| is), ends)
        };
        assert_eq!(malformed(|_| ()), (None, Some(5)));
        assert_eq!(malformed(|beats| beats[0].data[0] ^= 1 << 12), (Some(2), Some(5)));
        assert_eq!(malformed(|beats| beats[0].data[0] ^= 1), (Some(2), Some(5)));
        assert_eq!(malformed(|beats| beats[0].data[0] += 4 << 24), (Some(5), None));
        assert_eq!(malformed(|beats| beats[0].data[0] -= 4 << 24), (Some(4), Some(4)));
        // 136 DW are too many.
        assert_eq!(malformed(|beats| beats[0].data[0] += 128 << 24), (Some(2), None));
    }

    /// A queue holds `depth` beats; while a packet leaves, the next one comes.
    #[test]
    fn a_full_queue_takes_none() {
        let mut driven = Driven::new(3);
        driven.waits[0].extend(tlp(0, 8));
        driven.waits[0].extend(tlp(0, 8));
        let ready = [(); 5].map(|()| driven.cycle([false; CHANNELS], 34).in_ready[0]);
        assert_eq!(ready, [true, true, true, false, false]);
        let left = driven.run(12, 34).iter().filter(|&&(_, leaves, _)| leaves).count();
        assert_eq!(left, 8);
    }
}
