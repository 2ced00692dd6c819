//! Contradictions within a paper, and the models' choices. The text is `contradictions.toml`,
//! beside this crate's sources and compiled in.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::Paper;

/// All contradictions, in the order of the papers.
pub fn contradictions() -> &'static [Contradiction] {
    &CONTRADICTIONS
}

/// Two statements of a paper that contradict each other, or one that cannot hold.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contradiction {
    /// The paper.
    pub paper: Paper,
    /// Places in the paper.
    #[serde(rename = "where")]
    pub place: String,
    /// The contradiction.
    pub says: String,
    /// The models' choice, and the reason.
    pub taken: String,
}

/// Parses contradictions in the form of `contradictions.toml`; the error is a sentence.
fn parse(text: &str) -> Result<Vec<Contradiction>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    let are_empty = |known: &Contradiction| {
        [&known.place, &known.says, &known.taken].map(|text| text.trim().is_empty())
    };
    match file.contradiction.iter().find(|known| are_empty(known).contains(&true)) {
        Some(known) => Err(format!("a contradiction of {} has an empty field", known.paper)),
        None => Ok(file.contradiction),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    contradiction: Vec<Contradiction>,
}

/// The text is part of this program, not input: a test shows that it parses.
static CONTRADICTIONS: LazyLock<Vec<Contradiction>> = LazyLock::new(|| {
    parse(include_str!("../contradictions.toml"))
        .unwrap_or_else(|error| unreachable!("checked by the tests: {error}"))
});

#[cfg(test)]
mod tests {
    use super::*;

    /// The project's own text is complete and in the order of the papers. An unknown paper, an
    /// empty field and a misspelt field are refused.
    #[test]
    fn contradictions_are_sound() {
        let all = contradictions();
        assert!(all.is_sorted_by_key(|contradiction| contradiction.paper));
        let papers = Paper::ALL.into_iter().filter(|paper| *paper != Paper::Baselines);
        for paper in papers {
            assert!(all.iter().any(|contradiction| contradiction.paper == paper), "{paper}");
        }
        let entry = |paper: &str, says: &str, field: &str| {
            parse(&format!(
                "[[contradiction]]\npaper = \"{paper}\"\nwhere = \"1\"\nsays = \"{says}\"\n{field} = \"b\""
            ))
        };
        assert_eq!(entry("myvia", "a", "taken").unwrap().len(), 1);
        assert!(entry("none", "a", "taken").is_err());
        assert!(entry("myvia", " ", "taken").is_err());
        assert!(entry("myvia", "a", "token").is_err());
    }
}
