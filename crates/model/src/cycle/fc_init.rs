//! `fc_init`: the first credits of one virtual channel (S-15), as `hardware/fc_init` builds it.
//!
//! Both ends of a link tell what their buffers hold (InitFC1), and then that they have heard so
//! (InitFC2). Packets go behind that, and updates of credits.

use bellwire_wire::link::dllp::Stage;

/// Bits of a stage.
pub const STAGE_BITS: usize = 2;

/// A stage, as ports carry it: bits 7:6 of the link packet's type.
pub fn code_of(stage: Stage) -> u8 {
    match stage {
        Stage::Init1 => 0b01,
        Stage::Init2 => 0b11,
        Stage::Update => 0b10,
    }
}

/// The stage that a port carries.
pub fn stage_of(code: u8) -> Stage {
    match code {
        0b01 => Stage::Init1,
        0b11 => Stage::Init2,
        _ => Stage::Update,
    }
}

crate::ports! {
    /// What enters in a cycle.
    pub struct In {
        /// The ledger has an update for the far end.
        update_valid: bool = 1,
        /// A packet is taken, if one is offered.
        send_ready: bool = 1,
        /// A packet with the far end's credits has come.
        heard_valid: bool = 1,
        /// Its stage.
        heard_stage: u8 = STAGE_BITS,
        /// A TLP of the channel has been delivered.
        deliver: bool = 1,
        /// The link is trained anew, and all begins from the start; in gates this is `rst`.
        restart: bool = 1,
    }

    /// What stands at the outputs in a cycle.
    pub struct Out {
        /// The ledger's update is taken, if there is one.
        update_ready: bool = 1,
        /// A packet with the ledger's credits should go.
        send_valid: bool = 1,
        /// Its stage; zero if none should go.
        send_stage: u8 = STAGE_BITS,
        /// What has come counts for the gate.
        grant_valid: bool = 1,
        /// Packets of the channel may go.
        up: bool = 1,
    }
}

/// One end of the exchange.
///
/// What it sends is repeated `again_after` cycles after it was taken, and at once if the far end
/// shows that it still waits.
#[derive(Clone, Copy, Debug)]
pub struct FcInit {
    stage: Stage,
    is_due: bool,
    /// Cycles since a packet was taken.
    waited: u64,
    again_after: u64,
}

impl FcInit {
    /// An end that has heard nothing.
    pub fn new(again_after: u64) -> FcInit {
        FcInit { stage: Stage::Init1, is_due: true, waited: 0, again_after }
    }

    /// One cycle.
    #[inline]
    pub fn cycle(&mut self, input: In) -> Out {
        let is_up = self.stage == Stage::Update;
        let heard = input.heard_valid.then(|| stage_of(input.heard_stage));
        let is_init = heard.is_some_and(|stage| stage != Stage::Update);
        let send_valid = self.is_due || (is_up && input.update_valid);
        let out = Out {
            update_ready: is_up && input.send_ready,
            send_valid,
            send_stage: if send_valid { code_of(self.stage) } else { 0 },
            // The first value counts once; behind it, updates do.
            grant_valid: heard.is_some() && is_init == (self.stage == Stage::Init1),
            up: is_up,
        };
        let is_again = !is_up && !self.is_due && self.waited == self.again_after;
        self.waited = if self.is_due { 1 } else { self.waited + 1 };
        // Who sends an InitFC waits for an answer.
        self.is_due = is_init || is_again || (self.is_due && !input.send_ready);
        // Who sends anything but InitFC1 has heard the own credits.
        let is_known = input.deliver || heard.is_some_and(|stage| stage != Stage::Init1);
        self.stage = match self.stage {
            Stage::Init1 if is_init => Stage::Init2,
            Stage::Init2 if is_known => Stage::Update,
            stage => stage,
        };
        if input.restart {
            *self = FcInit::new(self.again_after);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::smp::config::Config;

    /// A cycle in which something comes and all that is offered is taken: what is sent, whether
    /// what came counts, and whether the channel is up.
    fn cycle(end: &mut FcInit, heard: Option<Stage>) -> (Option<Stage>, bool, bool) {
        let out = end.cycle(In {
            send_ready: true,
            heard_valid: heard.is_some(),
            heard_stage: heard.map_or(0, code_of),
            ..In::default()
        });
        (out.send_valid.then(|| stage_of(out.send_stage)), out.grant_valid, out.up)
    }

    /// Each stage is sent once and again, the first value counts once, and an end that is up
    /// answers one that is not.
    #[test]
    fn stages_follow_each_other() {
        let (first, second, update) = (Stage::Init1, Stage::Init2, Stage::Update);
        let mut end = FcInit::new(3);
        assert_eq!(cycle(&mut end, None), (Some(first), false, false));
        // An update cannot be the first that comes.
        assert_eq!(cycle(&mut end, Some(update)), (None, false, false));
        assert_eq!([(); 2].map(|()| cycle(&mut end, None).0), [None; 2]);
        assert_eq!(cycle(&mut end, None), (Some(first), false, false));
        assert_eq!(cycle(&mut end, Some(first)), (None, true, false));
        assert_eq!(cycle(&mut end, Some(first)), (Some(second), false, false));
        assert_eq!(cycle(&mut end, None), (Some(second), false, false));
        assert_eq!([(); 3].map(|()| cycle(&mut end, None).0), [None; 3]);
        assert_eq!(cycle(&mut end, Some(second)), (Some(second), false, false));
        assert_eq!(cycle(&mut end, Some(first)), (Some(update), false, true));
        assert_eq!(cycle(&mut end, Some(update)), (Some(update), true, true));
        assert_eq!([(); 8].map(|()| cycle(&mut end, None)), [(None, false, true); 8]);
    }

    /// A TLP brings up a channel whose far end is known, and no other. What is offered stays until
    /// it is taken. The ledger's updates pass an end that is up.
    #[test]
    fn a_tlp_shows_that_the_far_end_is_up() {
        let mut end = FcInit::new(3);
        let input = In { deliver: true, update_valid: true, ..In::default() };
        let waits = Out { send_valid: true, send_stage: 1, ..Out::default() };
        assert_eq!([(); 9].map(|()| end.cycle(input)), [waits; 9]);
        let heard = In { heard_valid: true, heard_stage: 1, ..In::default() };
        assert_eq!(end.cycle(heard), Out { grant_valid: true, ..waits });
        assert_eq!(end.cycle(In { deliver: true, ..In::default() }).send_stage, 3);
        let goes = Out { update_ready: true, send_valid: true, send_stage: 2, ..Out::default() };
        let ready = In { send_ready: true, update_valid: true, ..In::default() };
        assert_eq!([(); 3].map(|()| end.cycle(ready)), [Out { up: true, ..goes }; 3]);
        let out = end.cycle(In { update_valid: false, ..ready });
        assert_eq!(out, Out { update_ready: true, up: true, ..Out::default() });
        assert!(end.cycle(In { restart: true, send_ready: false, ..ready }).up);
        assert_eq!(end.cycle(In::default()), waits);
    }

    /// An update waits until the channel is up, however ready the line is.
    #[test]
    fn updates_wait_for_the_channel() {
        let mut end = FcInit::new(3);
        let ready = In { send_ready: true, update_valid: true, ..In::default() };
        assert_eq!([(); 9].map(|()| end.cycle(ready).update_ready), [false; 9]);
    }

    /// Between two ends that lose most packets, for any order of times: at last both are up, and
    /// neither is before the far end has its credits.
    #[test]
    fn both_ends_come_up_whatever_is_lost() {
        use crate::engine::Random;
        for seed in 0..50 {
            let mut random = Random::new(seed);
            let mut ends = [FcInit::new(1 + seed), FcInit::new(5)];
            let mut wires: [Vec<Option<Stage>>; 2] =
                [(); 2].map(|()| vec![None; 1 + seed as usize]);
            let mut granted = [0; 2];
            let mut up = [false; 2];
            for _ in 0..100_000 {
                for at in 0..2 {
                    let heard = wires[1 - at].remove(0);
                    let (sent, grants, is_up) = cycle(&mut ends[at], heard);
                    granted[at] += u64::from(grants);
                    up[at] = is_up;
                    wires[at].push(sent.filter(|_| random.below(8) == 0));
                    assert!(!up[at] || granted.iter().all(|&count| count > 0));
                }
                if up == [true; 2] {
                    break;
                }
            }
            assert_eq!(up, [true; 2], "seed {seed}");
        }
    }

    /// InitFC1 and InitFC2 are under way for 17 cycles each, and each takes one cycle to be heard:
    /// without losses both ends are up in cycle 36.
    #[test]
    fn two_trips_bring_a_channel_up() {
        let mut ends = [FcInit::new(34); 2];
        let mut wires: [Vec<Option<Stage>>; 2] = [(); 2].map(|()| vec![None; 17]);
        for now in 0..40 {
            let heard = [1, 0].map(|at: usize| wires[at].remove(0));
            for at in 0..2 {
                let (sent, _, is_up) = cycle(&mut ends[at], heard[at]);
                assert_eq!(is_up, now >= 36);
                wires[at].push(sent);
            }
        }
    }

    /// What is sent is repeated after the time to the far end and back.
    #[test]
    fn the_papers_link_repeats_after_34_cycles() {
        let config = Config::recommended();
        // Eight bytes on eight lanes, both Serdes, and what a link packet takes besides.
        let one_way = config.serdes * 2 + config.link_packet + crate::units::Span::from_ns(2);
        assert_eq!((one_way * 2).ps().div_ceil(config.cycle().ps()), 34);
    }
}
