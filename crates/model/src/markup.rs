//! What all drawings and pages share: text and numbers as SVG and HTML may hold them.

/// Text as an element or a quoted attribute may hold it. Control characters, which XML forbids, become spaces.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            control if control.is_control() => safe.push(' '),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text that is full of markup comes back from an XML parser as it was, in an element and in an attribute.
    #[test]
    fn nothing_in_a_text_is_markup() {
        let text = "a < b && \"c\" > 'd' ]]> <script>alert(1)</script> &amp;";
        let safe = escaped(text);
        let document = format!("<a b=\"{safe}\">{safe}</a>");
        let document = roxmltree::Document::parse(&document).unwrap();
        assert_eq!(document.root_element().text(), Some(text));
        assert_eq!(document.root_element().attribute("b"), Some(text));
        assert_eq!(escaped("a\u{1}b\nc"), "a b c");
    }
}
