//! `xbar`: the crossbar of cHPP with virtual channels, as `hardware/xbar` builds it (C-04, C-27,
//! C-42, C-43; cHPP sections 2.3, 3.4, 5.4).
//!
//! Ports of input `i` and output `o` are elements `i` and `o` of the fields. A packet names its
//! channel, its output and the class of the place behind the output. It crosses when its input, its
//! output and such a place are free, and then holds both until its last beat is through.

use super::vc_buf::{self, Beat, Room, Route, VcBuf};
use crate::engine::first_from;

/// Ports, at most.
pub const PORTS: usize = 4;
/// Channels of an input, at most.
pub const CHANNELS: usize = 4;
/// Classes of places behind an output, at most.
pub const CLASSES: usize = 4;

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// A beat is offered.
        in_valid: [bool; PORTS] = 4,
        /// The channel of its packet.
        in_channel: [u8; PORTS] = 8,
        /// The output of its packet; counts with the first beat.
        in_output: [u8; PORTS] = 8,
        /// The class of the place that its packet takes; counts with the first beat.
        in_class: [u8; PORTS] = 8,
        /// It is the last of its packet.
        in_last: [bool; PORTS] = 4,
        /// Its bits.
        in_data: [u64; PORTS] = 256,
        /// A beat is taken, if one is offered.
        out_ready: [bool; PORTS] = 4,
        /// A place of this class behind the output is free again.
        credit: [[bool; CLASSES]; PORTS] = 16,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// An offered beat of this channel is taken.
        in_ready: [[bool; CHANNELS]; PORTS] = 16,
        /// A packet of this input starts to cross.
        granted: [bool; PORTS] = 4,
        /// A beat is offered.
        out_valid: [bool; PORTS] = 4,
        /// The class of the place that its packet took.
        out_class: [u8; PORTS] = 8,
        /// It is the last of its packet.
        out_last: [bool; PORTS] = 4,
        /// Its bits; zero if none is offered.
        out_data: [u64; PORTS] = 256,
        /// Free places behind the output.
        credits: [[u8; CLASSES]; PORTS] = 128,
        /// Packets in each channel of the input.
        packets: [[u8; CHANNELS]; PORTS] = 128,
    }
}

/// The parameters of the module.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Inputs, and as many outputs.
    pub ports: usize,
    /// Channels of an input.
    pub channels: usize,
    /// Classes of places behind an output.
    pub classes: usize,
    /// Packets that a channel holds.
    pub depth: usize,
    /// Beats that it holds, of all of them together.
    pub room: usize,
    /// Beats of a packet, at most: a GET with a descriptor of 4 KiB has 257 (C-25).
    pub beats: usize,
    /// Places behind an output, of each class.
    pub credits: usize,
}

#[derive(Clone, Debug)]
struct Input {
    buffer: VcBuf,
    /// The channel that its arbiter prefers.
    prefers: u32,
    /// Where the packet goes that is crossing.
    route: Route,
}

#[derive(Clone, Debug)]
struct Output {
    /// The input that its arbiter prefers.
    prefers: u32,
    credits: [u8; CLASSES],
    /// Places that were told of in the previous cycle.
    returned: [bool; CLASSES],
    /// The output register: a beat and the class of its packet.
    register: Option<(u8, Beat)>,
}

/// A crossbar. A beat that comes in cycle `t` stands at its output in `t + 4` at the earliest.
#[derive(Clone, Debug)]
pub struct Xbar {
    shape: Shape,
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    /// The output that chooses first.
    first: usize,
}

impl Xbar {
    /// An empty crossbar.
    ///
    /// # Panics
    /// Unless a channel has room for the longest packet.
    pub fn new(shape: Shape) -> Xbar {
        assert!(shape.room >= shape.beats, "no packet could come");
        let mut credits = [0; CLASSES];
        credits[..shape.classes].fill(shape.credits as u8);
        let Shape { depth: packets, room: beats, beats: longest, .. } = shape;
        let input = || Input {
            buffer: VcBuf::new(shape.channels, Room { packets, beats, longest }),
            prefers: 0,
            route: Route { output: 0, class: 0 },
        };
        let output = || Output { prefers: 0, credits, returned: [false; CLASSES], register: None };
        Xbar {
            shape,
            inputs: (0..shape.ports).map(|_| input()).collect(),
            outputs: (0..shape.ports).map(|_| output()).collect(),
            first: 0,
        }
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let mut out = self.out();
        let takes = self.matches();
        let accepts: [bool; PORTS] = std::array::from_fn(|at| {
            input.out_ready[at] || self.outputs.get(at).is_none_or(|it| it.register.is_none())
        });
        for (at, output) in self.outputs.iter_mut().enumerate() {
            if accepts[at] {
                let crosses =
                    |it: &&Input| it.buffer.crosses() && usize::from(it.route.output) == at;
                let source = self.inputs.iter().find(crosses);
                output.register =
                    source.and_then(|it| it.buffer.out().map(|beat| (it.route.class, beat)));
            }
            for (credits, returned) in output.credits.iter_mut().zip(output.returned) {
                *credits += u8::from(returned);
            }
            output.returned = input.credit[at];
        }
        for (at, it) in self.inputs.iter_mut().enumerate() {
            let out_ready = accepts[usize::from(it.route.output)];
            let take = takes[at].map(|(channel, route)| {
                it.route = route;
                channel
            });
            out.granted[at] = take.is_some();
            let beat = input.in_valid[at].then(|| {
                let route = Route { output: input.in_output[at], class: input.in_class[at] };
                let beat = Beat { last: input.in_last[at], data: input.in_data[at] };
                (input.in_channel[at].into(), route, beat)
            });
            it.buffer.clock(vc_buf::In { beat, take, out_ready });
        }
        out
    }

    /// What stands at the outputs in this cycle whatever enters: all but `granted`.
    pub fn out(&self) -> Out {
        let mut out = Out::default();
        for (at, Input { buffer, .. }) in self.inputs.iter().enumerate() {
            for channel in 0..self.shape.channels {
                out.in_ready[at][channel] = buffer.in_ready(channel);
                out.packets[at][channel] = buffer.inside(channel) as u8;
            }
        }
        for (at, Output { register, credits, .. }) in self.outputs.iter().enumerate() {
            out.credits[at] = *credits;
            if let Some((class, Beat { last, data })) = *register {
                out.out_valid[at] = true;
                (out.out_class[at], out.out_last[at], out.out_data[at]) = (class, last, data);
            }
        }
        out
    }

    /// Matches inputs and outputs: by input, the channel whose packet starts to cross, and its
    /// route.
    ///
    /// Outputs choose one after the other; after a cycle in which a packet starts, the next output
    /// is first. The arbiter of an output chooses among the inputs with a packet for it, and that
    /// of the input among the channels with one.
    fn matches(&mut self) -> [Option<(usize, Route)>; PORTS] {
        let mut takes = [None; PORTS];
        // By output and input, the channels whose packet may start.
        let mut ready = [[0u64; PORTS]; PORTS];
        let mut is_busy = [false; PORTS];
        for (at, Input { buffer, route, .. }) in self.inputs.iter().enumerate() {
            if buffer.crosses() {
                is_busy[usize::from(route.output)] = true;
                continue;
            }
            for channel in 0..self.shape.channels {
                let Some(Route { output, class }) = buffer.front(channel) else { continue };
                let output = usize::from(output);
                if self.outputs[output].credits[usize::from(class)] > 0 {
                    ready[output][at] |= 1 << channel;
                }
            }
        }
        for step in 0..self.shape.ports {
            let output = (self.first + step) % self.shape.ports;
            let asks = |at: &usize| takes[*at].is_none() && ready[output][*at] != 0;
            let asking = (0..self.shape.ports).filter(asks).fold(0u64, |all, at| all | 1 << at);
            if asking == 0 || is_busy[output] {
                continue;
            }
            let input = first_from(asking, self.outputs[output].prefers);
            let channel = first_from(ready[output][input], self.inputs[input].prefers);
            self.outputs[output].prefers = input as u32 + 1;
            self.inputs[input].prefers = channel as u32 + 1;
            let route = self.inputs[input].buffer.front(channel).expect("it is ready");
            self.outputs[output].credits[usize::from(route.class)] -= 1;
            takes[input] = Some((channel, route));
        }
        if takes.iter().any(Option::is_some) {
            self.first = (self.first + 1) % self.shape.ports;
        }
        takes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: Shape =
        Shape { ports: 3, channels: 3, classes: 2, depth: 2, room: 99, beats: 9, credits: 9 };

    /// A packet that an input sends.
    #[derive(Clone, Copy)]
    struct Packet {
        input: usize,
        channel: u8,
        output: u8,
        class: u8,
        beats: u64,
    }

    /// A crossbar whose inputs send packets, a beat in every cycle in which it is taken.
    struct Bench {
        xbar: Xbar,
        packets: Vec<Packet>,
        cycle: u64,
        /// Outputs that take no beat.
        held: [bool; PORTS],
        /// Cycle and input of each start.
        starts: Vec<(u64, usize)>,
        /// Cycle, output and bits of each beat that left.
        left: Vec<(u64, usize, u64)>,
    }

    impl Bench {
        fn new(shape: Shape) -> Bench {
            Bench {
                xbar: Xbar::new(shape),
                packets: Vec::new(),
                cycle: 0,
                held: [false; PORTS],
                starts: Vec::new(),
                left: Vec::new(),
            }
        }

        /// A packet of `beats`; its bits are 100 for each packet sent, and 1 for each beat.
        fn send(&mut self, (input, channel): (usize, u8), (output, class, beats): (u8, u8, u64)) {
            self.packets.push(Packet { input, channel, output, class, beats });
        }

        /// Runs some cycles; places of `credit` are free again in the first of them.
        fn run(&mut self, cycles: u64, credit: &[(usize, usize)]) -> Out {
            let mut last = Out::default();
            for step in 0..cycles {
                let mut input = In { out_ready: self.held.map(|held| !held), ..In::default() };
                for &(output, class) in credit.iter().filter(|_| step == 0) {
                    input.credit[output][class] = true;
                }
                let mut sending = [None; PORTS];
                for (at, packet) in self.packets.iter().enumerate() {
                    let is_next = packet.beats > 0 && sending[packet.input].is_none();
                    if is_next {
                        sending[packet.input] = Some(at);
                        let port = packet.input;
                        input.in_valid[port] = true;
                        input.in_channel[port] = packet.channel;
                        input.in_output[port] = packet.output;
                        input.in_class[port] = packet.class;
                        input.in_last[port] = packet.beats == 1;
                        input.in_data[port] = 100 * at as u64 + packet.beats;
                    }
                }
                last = self.xbar.cycle(input);
                for at in sending.into_iter().flatten() {
                    let packet = &mut self.packets[at];
                    let channel = usize::from(packet.channel);
                    packet.beats -= u64::from(last.in_ready[packet.input][channel]);
                }
                for port in 0..PORTS {
                    if last.granted[port] {
                        self.starts.push((self.cycle, port));
                    }
                    if last.out_valid[port] && input.out_ready[port] {
                        self.left.push((self.cycle, port, last.out_data[port]));
                    }
                }
                self.cycle += 1;
            }
            last
        }
    }

    /// A packet of 3 beats that comes in cycle 0 starts in 2, leaves from 4 to 6, and takes input
    /// and output for 4 cycles. One for the same output from elsewhere starts then, and one for
    /// another output beside the first. The first keeps its place until its last beat is through.
    #[test]
    fn packets_take_input_and_output() {
        let mut bench = Bench::new(THREE);
        bench.send((0, 0), (1, 0, 3));
        bench.send((2, 1), (0, 0, 1));
        bench.send((1, 2), (1, 1, 1));
        let out = bench.run(6, &[]);
        assert_eq!((out.packets[0][0], out.packets[2][1]), (1, 0));
        let out = bench.run(4, &[]);
        assert_eq!(out.packets, [[0; CHANNELS]; PORTS]);
        assert_eq!(bench.starts, [(2, 0), (2, 2), (6, 1)]);
        let left = [(4, 0, 101), (4, 1, 3), (5, 1, 2), (6, 1, 1), (8, 1, 201)];
        assert_eq!(bench.left, left);
        assert_eq!(out.credits[0][..2], [8, 9]);
        assert_eq!(out.credits[1][..2], [8, 8]);
    }

    /// A channel of two packets takes a third when the first is through, and its last beat with it;
    /// other channels take packets all the time.
    #[test]
    fn channels_are_bounded() {
        let mut bench = Bench::new(THREE);
        for _ in 0..3 {
            bench.send((0, 0), (1, 0, 2));
        }
        let ready = |out: Out| out.in_ready[0];
        assert_eq!(ready(bench.run(1, &[])), [true, true, true, false]);
        // A packet is coming, and its channel alone takes beats.
        assert_eq!(ready(bench.run(1, &[])), [true, false, false, false]);
        assert_eq!(ready(bench.run(1, &[])), [true, true, true, false]);
        bench.run(1, &[]);
        assert_eq!(ready(bench.run(1, &[])), [false, true, true, false]);
        assert_eq!(ready(bench.run(1, &[])), [true, true, true, false]);
        bench.run(10, &[]);
        assert_eq!(bench.starts, [(2, 0), (5, 0), (8, 0)]);
    }

    /// A channel of 5 beats takes a packet only if the longest one, of 4, would fit. Its other
    /// beats are taken then, whatever is held up. So other channels wait for no receiver (C-27).
    #[test]
    fn room_is_counted_in_beats() {
        let mut bench = Bench::new(Shape { depth: 9, room: 5, beats: 4, ..THREE });
        bench.held[1] = true;
        for beats in [3, 4, 1] {
            bench.send((0, 0), (1, 0, beats));
        }
        let ready = |out: Out| out.in_ready[0];
        bench.run(3, &[]);
        // Two beats of three are in the memory, and then one.
        assert_eq!(ready(bench.run(1, &[])), [false, true, true, false]);
        assert_eq!(ready(bench.run(1, &[])), [true, true, true, false]);
        bench.run(3, &[]);
        assert_eq!(ready(bench.run(9, &[])), [false, true, true, false]);
        bench.held[1] = false;
        bench.run(20, &[]);
        assert_eq!(bench.left.len(), 8);
    }

    /// A packet without a place waits until two cycles after it is told of one; other channels pass
    /// it.
    #[test]
    fn places_hold_packets_back() {
        let mut bench = Bench::new(Shape { credits: 1, ..THREE });
        bench.send((0, 0), (1, 1, 1));
        bench.send((0, 0), (1, 1, 1));
        bench.send((0, 2), (1, 0, 1));
        let out = bench.run(20, &[]);
        assert_eq!(bench.starts, [(2, 0), (4, 0)]);
        assert_eq!((out.credits[1][..2].to_vec(), out.packets[0][0]), (vec![0, 0], 1));
        bench.run(10, &[(1, 1)]);
        assert_eq!(bench.starts[2..], [(22, 0)]);
        let out = bench.run(3, &[(1, 0), (2, 1)]);
        assert_eq!((out.credits[1][..2].to_vec(), out.credits[2][1]), (vec![1, 0], 2));
    }

    /// An output that takes nothing holds what crosses to it, and neither loses nor doubles a beat;
    /// the other outputs go on.
    #[test]
    fn outputs_hold_beats_up() {
        let mut bench = Bench::new(THREE);
        bench.held[1] = true;
        bench.send((0, 0), (1, 0, 3));
        bench.send((2, 1), (0, 0, 2));
        bench.run(10, &[]);
        assert_eq!(bench.left, [(4, 0, 102), (5, 0, 101)]);
        bench.held[1] = false;
        bench.run(10, &[]);
        assert_eq!(bench.left[2..], [(10, 1, 3), (11, 1, 2), (12, 1, 1)]);
    }

    /// Inputs take turns at an output, and channels at an input.
    #[test]
    fn inputs_and_channels_take_turns() {
        let mut bench = Bench::new(THREE);
        for input in [0, 0, 1, 1, 2, 2] {
            bench.send((input, 0), (1, 0, 1));
        }
        bench.run(30, &[]);
        let inputs: Vec<usize> = bench.starts.iter().map(|it| it.1).collect();
        assert_eq!(inputs, [0, 1, 2, 0, 1, 2]);

        let mut bench = Bench::new(THREE);
        // The first packet holds the input until the others are there.
        bench.send((1, 0), (0, 0, 9));
        for channel in [1, 1, 2, 2] {
            bench.send((1, channel), (0, 0, 1));
        }
        bench.run(30, &[]);
        let bits: Vec<u64> = bench.left[9..].iter().map(|it| it.2).collect();
        assert_eq!(bits, [101, 301, 201, 401]);
    }

    /// Outputs take turns to choose first, so an input serves them in turn.
    #[test]
    fn outputs_take_turns_to_choose() {
        let mut bench = Bench::new(THREE);
        bench.send((1, 0), (0, 0, 9));
        for (channel, output) in [(0, 2), (1, 1), (2, 0), (2, 0), (1, 1)] {
            bench.send((1, channel), (output, 0, 1));
        }
        bench.run(40, &[]);
        let outputs: Vec<usize> = bench.left[9..].iter().map(|it| it.1).collect();
        assert_eq!(outputs, [1, 2, 0, 1, 0]);
    }

    /// An output whose receiver gives no place back. With a channel for each output the other one
    /// keeps its speed, a packet for each place that comes back. With one channel its packets stop
    /// behind the first that waits.
    // shows: C-43
    #[test]
    fn a_blocked_output_blocks_no_other_channel() {
        for (channels, passed) in [(3, 8), (1, 1)] {
            let shape = Shape { channels, depth: 16, credits: 1, ..THREE };
            let mut bench = Bench::new(shape);
            for at in 0..16 {
                let output = at % 2;
                bench.send((0, output % channels as u8), (output, 0, 1));
            }
            bench.run(3, &[]);
            for _ in 0..9 {
                bench.run(4, &[(1, 0)]);
            }
            let by_output = |output| bench.left.iter().filter(|it| it.1 == output).count();
            assert_eq!((by_output(0), by_output(1)), (1, passed), "{channels} channels");
        }
    }
}
