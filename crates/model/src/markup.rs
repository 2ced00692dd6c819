//! Escaping for drawings and pages: text and numbers in SVG and HTML.

/// Escapes text for an element or a quoted attribute. XML forbids control characters, so they
/// become spaces.
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

    /// A text full of markup survives an XML parser unchanged, in an element and in an attribute.
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
