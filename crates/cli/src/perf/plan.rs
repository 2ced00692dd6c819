//! The plan of the measurements, with every default filled in.

use super::order::{Op, WaitMode};
use crate::command::{WrongUsage, quoted, word};
use crate::units;
use anyhow::Result;
use std::str::FromStr;
use std::time::Duration;

/// Most pairs.
pub const PAIRS: u8 = 64;

/// Longest message in bytes.
const LONGEST_BYTES: usize = 64 << 20;

/// Message sizes: a list of sizes and ranges. A range means every doubling from its first to its
/// last size.
#[derive(Clone, PartialEq, Debug)]
pub struct Sizes(pub Vec<usize>);

impl FromStr for Sizes {
    type Err = String;

    fn from_str(text: &str) -> Result<Sizes, String> {
        let mut sizes = Vec::new();
        for part in text.split(',') {
            match part.split_once("..") {
                None => sizes.push(units::parse_bytes(part)?),
                Some((first, last)) => {
                    let (first, last) = (units::parse_bytes(first)?, units::parse_bytes(last)?);
                    if first == 0 || last < first || last > LONGEST_BYTES {
                        return Err(format!("\"{part}\" is no range from 8 B up to 64 MiB"));
                    }
                    let doubled = |&bytes: &usize| Some(2 * bytes).filter(|&bytes| bytes <= last);
                    sizes.extend(std::iter::successors(Some(first), doubled));
                }
            }
        }
        // Every message begins with a number, and the receiver of a put polls its last word.
        let bad = sizes
            .iter()
            .find(|&&bytes| bytes == 0 || !bytes.is_multiple_of(8) || bytes > LONGEST_BYTES);
        match bad {
            None => Ok(Sizes(sizes)),
            Some(bad) => Err(format!("a size is a multiple of 8 B up to 64 MiB, not {bad} B")),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Plan {
    pub device: String,
    pub ops: Vec<Op>,
    pub sizes: Vec<usize>,
    pub pairs: u8,
    pub wait: WaitMode,
    /// The leader's processors; empty: any.
    pub leader_cpus: Vec<usize>,
    /// The follower's processors; empty: any.
    pub follower_cpus: Vec<usize>,
    pub quick: bool,
    /// Rounds; each measures everything of one size once.
    pub rounds: usize,
    /// Target duration of one measurement in one round.
    pub sample: Duration,
}

/// The command line's choices.
#[derive(clap::Args)]
pub struct Wishes {
    /// What to measure [default: send,put,get]
    #[arg(long, value_delimiter = ',', value_name = "OPS")]
    ops: Vec<Op>,
    /// Sizes of messages: a list, or a range that doubles (8..4MiB); multiples of 8 B up to 64 MiB
    #[arg(long)]
    sizes: Option<Sizes>,
    /// Pairs of functions that are measured at once
    #[arg(
        long,
        default_value_t = 1,
        value_name = "N",
        value_parser = clap::value_parser!(u8).range(1..=PAIRS as i64)
    )]
    pairs: u8,
    /// Fewer sizes and short samples: figures are rough
    #[arg(long)]
    quick: bool,
    /// How both sides wait [default: spin, or block if there are fewer processors than threads]
    #[arg(long)]
    wait: Option<WaitMode>,
    /// Processors to use: the first half for the leader, the second for the follower [default: of
    /// different cores if possible]
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    cpus: Vec<usize>,
}

impl Plan {
    /// Fills in the defaults. `allowed`: usable processors, the best to combine first.
    pub fn new(device: &str, wishes: Wishes, allowed: &[usize]) -> Result<Plan> {
        let Wishes { mut ops, sizes, pairs, wait, cpus, quick } = wishes;
        if let Some(cpu) = cpus.iter().find(|cpu| !allowed.contains(cpu)) {
            return Err(WrongUsage::error(format!(
                "--cpus: this program may not use CPU {cpu}, only {allowed:?}"
            )));
        }
        let simulated = super::sides::is_simulated(device);
        if simulated && !cpus.is_empty() {
            return Err(WrongUsage::error("--cpus: a simulated device does not care"));
        }
        let allowed = if simulated { &[] } else { allowed };
        ops.dedup();
        if ops.is_empty() {
            ops = vec![Op::Send, Op::Put, Op::Get];
        }
        // Two threads for each pair.
        let cpus = if cpus.is_empty() {
            allowed.iter().copied().take(2 * usize::from(pairs)).collect()
        } else {
            cpus
        };
        let (leader_cpus, follower_cpus) = match &cpus[..] {
            // The system places unpinned threads best.
            [] | [_] => (Vec::new(), Vec::new()),
            [one, rest @ ..] if pairs == 1 => (vec![*one], vec![rest[0]]),
            all => {
                let (first, second) = all.split_at(all.len() / 2);
                (first.to_vec(), second.to_vec())
            }
        };
        let crowded = cpus.len() < 2 * usize::from(pairs);
        let sleeps = crowded && !simulated;
        let wait = wait.unwrap_or(if sleeps { WaitMode::Block } else { WaitMode::Spin });
        let default: &[usize] = if quick {
            &[8, 4 << 10, 64 << 10]
        } else {
            &[8, 64, 512, 4 << 10, 64 << 10, 1 << 20, 4 << 20]
        };
        let sizes = sizes.map_or_else(|| default.to_vec(), |sizes| sizes.0);
        let (rounds, sample_us) = match (simulated, quick) {
            (false, true) => (1, 10_000),
            (false, false) => (5, 30_000),
            // Virtual time: every round would be like the first.
            (true, true) => (1, 100),
            (true, false) => (1, 1_000),
        };
        let sample = Duration::from_micros(sample_us);
        Ok(Plan {
            device: device.to_owned(),
            ops,
            sizes,
            pairs,
            wait,
            leader_cpus,
            follower_cpus,
            quick,
            rounds,
            sample,
        })
    }

    /// The command that repeats the measurement. `connect`: the argument of --connect.
    pub fn command(&self, connect: Option<&str>) -> String {
        let list = |words: Vec<String>| words.join(",");
        let mut command = format!(
            "bellwire perf {} --ops {} --sizes {} --pairs {} --wait {}",
            quoted(&self.device),
            list(self.ops.iter().map(word).collect()),
            list(self.sizes.iter().map(|&size| exact(size)).collect()),
            self.pairs,
            word(&self.wait),
        );
        let cpus = self.leader_cpus.iter().chain(&self.follower_cpus);
        let cpus = list(cpus.map(usize::to_string).collect());
        if !cpus.is_empty() {
            command += &format!(" --cpus {cpus}");
        }
        if self.quick {
            command += " --quick";
        }
        match connect {
            Some(node) => command + &format!(" --connect {}", quoted(node)),
            None => command,
        }
    }
}

/// A size as `--sizes` takes it, with its unit if that loses nothing.
fn exact(size: usize) -> String {
    let text = units::bytes(size as u64).replace(' ', "");
    if units::parse_bytes(&text) == Ok(size) { text } else { size.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE: &str = "shm:x?node=1";

    fn wishes() -> Wishes {
        Wishes { ops: vec![], sizes: None, pairs: 1, wait: None, cpus: vec![], quick: true }
    }

    /// What the printed command says of a size is that size.
    #[test]
    fn sizes_are_printed_exactly() {
        let printed = [8, 1200, 1228, 4096, 100 << 20].map(exact);
        assert_eq!(printed, ["8B", "1200", "1228", "4KiB", "100MiB"]);
    }

    /// Lists and ranges of sizes are parsed; sizes that cannot be measured are refused.
    #[test]
    fn sizes_are_understood() {
        let parse = |text: &str| text.parse::<Sizes>().map(|sizes| sizes.0);
        assert_eq!(parse("8,4KiB"), Ok(vec![8, 4096]));
        assert_eq!(parse("8..64"), Ok(vec![8, 16, 32, 64]));
        assert_eq!(parse("8..4MiB").map(|sizes| sizes.len()), Ok(20));
        assert_eq!(parse("64,1K..3K"), Ok(vec![64, 1024, 2048]));
        for bad in ["", "0", "7", "12", "8..", "64..8", "8,", "0..64", "65MiB", "8..1GiB", "a..b"] {
            assert!(parse(bad).is_err(), "{bad:?} was taken");
        }
    }

    /// Two processors are used if there are two. No side spins where that would delay the other.
    #[test]
    fn defaults_fit_the_machine() {
        let plan =
            |wishes, allowed: &[usize]| Plan::new(DEVICE, wishes, allowed).expect("possible");
        let two = plan(wishes(), &[3, 5, 7]);
        assert_eq!((&two.leader_cpus[..], &two.follower_cpus[..]), (&[3][..], &[5][..]));
        assert_eq!(two.wait, WaitMode::Spin);

        let one = plan(wishes(), &[0]);
        assert!(one.leader_cpus.is_empty() && one.follower_cpus.is_empty());
        assert_eq!(one.wait, WaitMode::Block);

        let many = plan(Wishes { pairs: 8, ..wishes() }, &[0, 1]);
        assert_eq!((&many.leader_cpus[..], &many.follower_cpus[..]), (&[0][..], &[1][..]));
        assert_eq!(many.wait, WaitMode::Block);

        let foreign = Wishes { cpus: vec![9], ..wishes() };
        assert!(Plan::new(DEVICE, foreign, &[0, 1]).is_err());
    }

    /// The printed command names every choice, and is quoted for a shell.
    #[test]
    fn the_command_says_it_all() {
        let plan = Plan::new(DEVICE, wishes(), &[0, 1]).expect("possible");
        assert_eq!(
            plan.command(Some("2")),
            "bellwire perf 'shm:x?node=1' --ops send,put,get --sizes 8B,4KiB,64KiB --pairs 1 --wait spin --cpus 0,1 --quick --connect 2"
        );
    }
}
