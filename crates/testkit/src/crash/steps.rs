//! The steps that the sources name, and one passage of one step.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;

/// A crash at a passage of a step, in the form of `BELLWIRE_STEP`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Passage {
    /// The step.
    pub step: String,
    /// The passage, counted from 1.
    pub count: u64,
    /// Whether it stops itself, to be continued later, instead of killing itself.
    pub stop: bool,
}

impl fmt::Display for Passage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.step, self.count, if self.stop { "stop" } else { "kill" })
    }
}

impl Passage {
    /// Reads what `Display` wrote.
    pub fn parse(text: &str) -> Option<Passage> {
        let mut parts = text.split(':');
        let (step, count, action) = (parts.next()?, parts.next()?, parts.next()?);
        let stop = match action {
            "stop" => true,
            "kill" => false,
            _ => return None,
        };
        Some(Passage { step: step.to_owned(), count: count.parse().ok()?, stop })
    }
}

/// The names in all calls of `step` in the sources of devices and what is below them, so that no
/// new step is forgotten. Those of `ethernet`, `rdma` and `rdmacm` are passed by tests of their
/// own.
pub fn steps_of_the_sources() -> BTreeSet<String> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the folder of all crates");
    let apart = ["testkit", "ethernet", "rdma", "rdmacm", "target"];
    let is_below = |entry: &Path| !apart.iter().any(|name| entry.ends_with(name));
    let entries = std::fs::read_dir(crates).expect("the sources").flatten();
    let folders = entries.map(|entry| entry.path()).filter(|entry| is_below(entry));
    folders.flat_map(|folder| steps_in(&folder)).collect()
}

/// The names in all calls of `step` in the sources of a folder.
pub fn steps_in(folder: &Path) -> BTreeSet<String> {
    let mut steps = BTreeSet::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.ends_with("target") {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                steps.extend(calls(&text).map(str::to_owned));
            }
        }
    }
    steps
}

/// The names in calls such as `step("name")`.
fn calls(text: &str) -> impl Iterator<Item = &str> {
    const CALL: &str = concat!("step(", "\"");
    text.split(CALL).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A passage survives formatting and parsing, and step names are found in code.
    #[test]
    fn passages_and_steps_are_read() {
        let passage = Passage { step: "ring".to_owned(), count: 7, stop: true };
        assert_eq!(Passage::parse(&passage.to_string()), Some(passage));
        assert_eq!(Passage::parse("ring:1:dance"), None);
        let code = format!("a(); {0}(\"one\"); {0}(name); x.{0}(\"two\")", "step");
        assert_eq!(calls(&code).collect::<Vec<_>>(), ["one", "two"]);
        let steps = steps_of_the_sources();
        assert!(steps.len() >= 10 && steps.contains("hello"), "{steps:?}");
    }
}
