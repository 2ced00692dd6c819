//! Every error and status of the library has an exception of its own.

/// The names of an enumeration's variants, in a source.
fn variants<'a>(source: &'a str, enumeration: &str) -> Vec<&'a str> {
    let begin = source.find(&format!("pub enum {enumeration} {{")).expect("the enumeration");
    let body = source[begin..].lines().skip(1).take_while(|line| *line != "}");
    let names = body.filter_map(|line| {
        let name = line.strip_prefix("    ")?;
        let end = name.find(|c: char| !c.is_ascii_alphanumeric())?;
        name.starts_with(|c: char| c.is_ascii_uppercase()).then_some(&name[..end])
    });
    names.collect()
}

/// A new error of the library is not forgotten: the binding names it, and its class exists.
#[test]
fn every_error_has_a_class() {
    let binding = include_str!("../src/errors.rs");
    let classes = include_str!("../python/bellwire/_errors.py");
    let enums = include_str!("../python/bellwire/_enums.py");
    let errors = variants(include_str!("../../../crates/device/src/error.rs"), "Error");
    assert!(errors.len() > 20, "{errors:?}");
    for name in errors {
        let arm = binding.lines().find(|line| line.trim().starts_with(&format!("Error::{name}")));
        let arm = arm.unwrap_or_else(|| panic!("src/errors.rs has no class for Error::{name}"));
        let class = arm.split('"').nth(1).expect("a class");
        assert!(classes.contains(&format!("class {class}(Error")), "_errors.py has no {class}");
    }
    let statuses = variants(include_str!("../../../crates/device/src/completion.rs"), "Status");
    assert!(statuses.len() > 8, "{statuses:?}");
    for (number, name) in statuses.into_iter().enumerate() {
        let upper = name.chars().enumerate().fold(String::new(), |word, (at, c)| {
            let gap = if at > 0 && c.is_ascii_uppercase() { "_" } else { "" };
            format!("{word}{gap}{}", c.to_ascii_uppercase())
        });
        assert!(enums.contains(&format!("    {upper} = {number}\n")), "_enums.py lacks {upper}");
        let handled = name == "Success" || binding.contains(&format!("Status::{name}"));
        assert!(handled, "src/errors.rs has no class for Status::{name}");
    }
}
