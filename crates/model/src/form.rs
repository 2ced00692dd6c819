//! What is wrong with the form of a configuration, in one line, as errors are printed.

/// Where a text is not TOML of the form that is wanted, and why.
pub(crate) fn fault(error: &toml::de::Error) -> String {
    let in_line = |text: &str| text.trim_end().replace('\n', ", ");
    // The error alone knows the line, or the key: it has seen the text, or the table.
    let told = error.to_string();
    match told.lines().next().and_then(|first| first.strip_prefix("TOML parse error at ")) {
        Some(place) => format!("{place}: {}", in_line(error.message())),
        None => in_line(&told),
    }
}

#[cfg(test)]
mod tests {
    use super::fault;

    /// A fault of form is told in one line, with its place if it has one.
    #[test]
    fn one_line_says_where_and_why() {
        let fault_of = |text: &str| {
            let error = toml::from_str::<std::collections::BTreeMap<String, u8>>(text);
            fault(&error.expect_err("it is wrong"))
        };
        let told = fault_of("a = 1\nb = [\n");
        assert!(told.starts_with("line 2, column ") && !told.contains('\n'), "{told}");
        let told = fault_of("a = 1\nb = \"x\"\n");
        assert!(told.starts_with("line 2, column 5: invalid type"), "{told}");
        let table: toml::Table = toml::from_str("a = 300").expect("a table");
        let error = table.try_into::<std::collections::BTreeMap<String, u8>>();
        let told = fault(&error.expect_err("too large"));
        assert!(told.contains("`a`") && !told.contains('\n'), "{told}");
    }
}
