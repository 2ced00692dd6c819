//! `vc_buf`: the buffer of one input of a crossbar, with its virtual channels, as `hardware/xbar`
//! builds it.
//!
//! A beat that comes in cycle `t` is in a register in `t + 1`, which is written into the memory. So
//! its packet can start to cross in `t + 2`, and the beat leaves from `t + 3` on.
//!
//! The room of a channel is counted in beats. A packet begins to come if its channel has room for
//! the longest one. So it never stops within, where it would hold up the other channels (C-27).

use std::collections::VecDeque;

use super::stream_fifo::{self, StreamFifo};

/// A beat of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat {
    /// It is the last of its packet.
    pub last: bool,
    /// Its bits.
    pub data: u64,
}

/// Where a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The output.
    pub output: u8,
    /// The class of the place behind the output.
    pub class: u8,
}

/// What enters in a cycle.
#[derive(Clone, Copy, Debug)]
pub struct In {
    /// A beat is offered, by channel; the route counts with the first of a packet.
    pub beat: Option<(usize, Route, Beat)>,
    /// The packet in front of this channel starts to cross. None is crossing, and one is there.
    pub take: Option<usize>,
    /// The beat that stands at the output leaves.
    pub out_ready: bool,
}

/// One virtual channel.
#[derive(Clone, Debug)]
struct Channel {
    routes: StreamFifo,
    beats: VecDeque<Beat>,
    /// Packets whose first beat has entered and whose last has not left.
    inside: usize,
}

/// How much a channel holds.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Packets.
    pub packets: usize,
    /// Beats of all of them, without the one at the output.
    pub beats: usize,
    /// Beats of a packet, at most.
    pub longest: usize,
}

/// Virtual channels in one memory.
#[derive(Clone, Debug)]
pub struct VcBuf {
    channels: Vec<Channel>,
    room: Room,
    /// The channel of a packet that is coming.
    coming: Option<usize>,
    /// The beat that is written in this cycle.
    entered: Option<(usize, Beat)>,
    /// The channel of the packet that is crossing.
    crossing: Option<usize>,
    /// What stands at the output of the memory.
    read: Option<Beat>,
}

impl VcBuf {
    /// Empty channels.
    pub fn new(channels: usize, room: Room) -> VcBuf {
        let channel =
            || Channel { routes: StreamFifo::new(room.packets), beats: VecDeque::new(), inside: 0 };
        VcBuf {
            channels: (0..channels).map(|_| channel()).collect(),
            room,
            coming: None,
            entered: None,
            crossing: None,
            read: None,
        }
    }

    /// Whether a beat of this channel is taken: packets come one after the other, and one begins if
    /// there are a place and beats for the longest.
    #[inline]
    pub fn in_ready(&self, channel: usize) -> bool {
        if let Some(coming) = self.coming {
            return coming == channel;
        }
        let Channel { beats, inside, .. } = &self.channels[channel];
        let entered = self.entered.is_some_and(|(of, _)| of == channel);
        let filled = beats.len() + usize::from(entered);
        *inside < self.room.packets && filled + self.room.longest <= self.room.beats
    }

    /// Packets in a channel, including those of which only a part is there.
    #[inline]
    pub fn inside(&self, channel: usize) -> usize {
        self.channels[channel].inside
    }

    /// The route of the packet in front of a channel.
    #[inline]
    pub fn front(&self, channel: usize) -> Option<Route> {
        let out = self.channels[channel].routes.out();
        let route = Route { output: out.out_data as u8, class: (out.out_data >> 8) as u8 };
        out.out_valid.then_some(route)
    }

    /// Whether a packet is crossing.
    #[inline]
    pub fn crosses(&self) -> bool {
        self.crossing.is_some()
    }

    /// The beat at the output.
    #[inline]
    pub fn out(&self) -> Option<Beat> {
        self.read
    }

    /// The clock edge that ends a cycle.
    #[inline]
    pub fn clock(&mut self, input: In) {
        let enters = input.beat.filter(|(channel, ..)| self.in_ready(*channel));
        let begins = enters.filter(|_| self.coming.is_none());
        for (at, channel) in self.channels.iter_mut().enumerate() {
            let begins = begins.filter(|begins| begins.0 == at);
            let route = begins
                .map_or(0, |(_, route, _)| u64::from(route.output) | u64::from(route.class) << 8);
            channel.routes.cycle(stream_fifo::In {
                in_valid: begins.is_some(),
                in_data: route,
                out_ready: input.take == Some(at),
            });
            channel.inside += usize::from(begins.is_some());
        }

        // Only the beat at the output tells whether its packet goes on.
        let goes_on = self.read.is_none_or(|beat| input.out_ready && !beat.last);
        let reads = input.take.or(self.crossing).filter(|_| goes_on);
        let ends = self.read.is_some_and(|beat| input.out_ready && beat.last);
        if self.read.is_none() || input.out_ready {
            self.read = reads.and_then(|channel| self.channels[channel].beats.pop_front());
        }
        match self.crossing {
            Some(channel) if ends => {
                self.channels[channel].inside -= 1;
                self.crossing = None;
            }
            _ => self.crossing = input.take.or(self.crossing),
        }

        // The memory is read before it is written.
        if let Some((channel, beat)) = self.entered.take() {
            self.channels[channel].beats.push_back(beat);
        }
        if let Some((channel, _, beat)) = enters {
            self.entered = Some((channel, beat));
            self.coming = (!beat.last).then_some(channel);
        }
    }
}
