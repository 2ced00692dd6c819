//! Counters that show that an attack arrived, and messages that show that it had no effect.

use crate::conformance::bytes::pattern;
use crate::conformance::{Node, Patience, Stage};
use bellwire::stat::{files_of, read};
use bellwire::{Message, Operation, Status};
use std::path::PathBuf;

/// The counters of a function's device, as the process shows them to `bellwire stat`.
pub struct Witness {
    file: PathBuf,
}

impl Witness {
    /// Those of a node of this process.
    #[track_caller]
    pub fn of(node: &Node) -> Witness {
        Self::find(node, None)
    }

    /// Those of a node with the same address as another one, but elsewhere.
    #[track_caller]
    pub fn of_namesake(node: &Node, other: &Witness) -> Witness {
        Self::find(node, Some(other))
    }

    #[track_caller]
    fn find(node: &Node, other: Option<&Witness>) -> Witness {
        let mark = format!("\"address\":\"{}\"", node.function.address());
        let files = files_of(std::process::id()).expect("our own");
        let is_its = |file: &PathBuf| {
            other.is_none_or(|other| other.file != *file)
                && read(file).is_ok_and(|text| text.is_some_and(|text| text.contains(&mark)))
        };
        let file = files.into_iter().find(is_its).expect("each function shows itself");
        Witness { file }
    }

    /// A counter as it was shown last, some tenth of a second ago.
    #[track_caller]
    pub fn shown(&self, counter: &str) -> u64 {
        let text = read(&self.file).expect("a snapshot").expect("an open function");
        number(&text, counter).unwrap_or(0)
    }

    /// Counters as they are now. The nodes go on meanwhile.
    #[track_caller]
    pub fn now<const N: usize>(&self, stage: &mut Stage<'_>, counters: [&str; N]) -> [u64; N] {
        // The next one may have been begun before this call, but not the one behind it.
        let until = self.shown("serial") + 2;
        stage.until("a fresh look at counters", |_| (self.shown("serial") >= until).then_some(()));
        counters.map(|counter| self.shown(counter))
    }
}

fn number(text: &str, counter: &str) -> Option<u64> {
    let digits = text.split(&format!("\"{counter}\":")).nth(1)?;
    let end = digits.find(|character: char| !character.is_ascii_digit())?;
    digits[..end].parse().ok()
}

/// One message, by which the receiver hears where the sender is.
#[track_caller]
pub fn greet(stage: &mut Stage<'_>, [from, to]: [usize; 2]) {
    let there = stage.nodes[to].address();
    stage.nodes[to].receive(8, 0);
    let node = &mut stage.nodes[from];
    node.send(Message::inline(b"greeting").to(there));
    assert_eq!(stage.success(to).peer, stage.nodes[from].address());
    stage.success(from);
}

/// Two nodes of a stage send each other one message. Any other completion is a failure.
#[track_caller]
pub fn exchange(stage: &mut Stage<'_>, pair: [usize; 2]) {
    // The longer one takes several frames.
    exchange_while(stage, pair, [40, 4_000], |_| {});
}

/// The same with messages of these lengths, while something else is done in each turn.
#[track_caller]
pub fn exchange_while(
    stage: &mut Stage<'_>,
    [first, second]: [usize; 2],
    [forth, back]: [usize; 2],
    mut meanwhile: impl FnMut(&mut Stage<'_>),
) {
    for (from, to, length) in [(first, second, forth), (second, first, back)] {
        let there = stage.nodes[to].address();
        stage.nodes[to].receive(length, 0);
        let node = &mut stage.nodes[from];
        node.send(Message::buffer(pattern(from as u64, length)).to(there));
    }
    let (mut left, mut patience) = (4, Patience::new());
    while left > 0 {
        for (who, other, length) in [(first, second, back), (second, first, forth)] {
            let Some(done) = stage.nodes[who].poll() else { continue };
            assert_eq!(done.status, Status::Success, "node {who}: {done:?}; {}", stage.story());
            left -= 1;
            if done.operation == Operation::Receive {
                assert_eq!(done.peer, stage.nodes[other].address(), "{}", stage.story());
                let bytes = done.buffer.expect("its buffer").into_bytes(done.length);
                assert!(bytes == pattern(other as u64, length), "the message is another one");
            }
        }
        meanwhile(stage);
        patience.spend(|| format!("messages of {first} and {second}: {}", stage.story()));
    }
}
