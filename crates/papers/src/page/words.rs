//! Text as markup.

use std::ops::Range;

use bellwire_model::markup::escaped;

use crate::RowId;
use crate::evidence::identity_places;

/// The text as markup, with a link for each row that it names.
pub fn linked(text: &str) -> String {
    let mut out = String::new();
    let mut done = 0;
    let is_row = |place: &Range<usize>| RowId::parse(&text[place.clone()]).is_some();
    for place in identity_places(text).filter(is_row) {
        let id = &text[place.clone()];
        out.push_str(&escaped(&text[done..place.start]));
        out.push_str(&format!("<a class=\"row\" href=\"#{id}\">{id}</a>"));
        done = place.end;
    }
    out.push_str(&escaped(&text[done..]));
    out
}

/// The rows that a text names, each once.
pub fn rows_in(text: &str) -> Vec<RowId> {
    let mut rows: Vec<RowId> =
        identity_places(text).filter_map(|place| RowId::parse(&text[place])).collect();
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// "1 value", "2 values".
pub fn count(number: usize, of: &str) -> String {
    format!("{number} {of}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Existing rows become links; look-alikes and all other text stay text.
    #[test]
    fn rows_become_links() {
        assert_eq!(
            linked("<b> (S-25 to S-28) & CRC-32"),
            "&lt;b&gt; (<a class=\"row\" href=\"#S-25\">S-25</a> to <a class=\"row\" href=\"#S-28\">S-28</a>) &amp; CRC-32"
        );
        assert_eq!(rows_in("S-28, S-25, S-28").len(), 2);
        assert_eq!(count(1, "value"), "1 value");
        assert_eq!(count(2, "value"), "2 values");
    }
}
