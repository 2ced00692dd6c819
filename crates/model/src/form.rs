//! Parameters as TOML: reads them, and describes errors in one line.

use std::ops::RangeInclusive;

use serde::de::DeserializeOwned;

/// Why parameters are refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// The text is not TOML of the expected form: where, and why.
    #[error("the configuration cannot be read: {0}")]
    Form(String),
    /// A number is out of range.
    #[error("`{name}` is {value}; it must lie in {least}..={most}")]
    Range {
        /// Section and key.
        name: &'static str,
        /// The value found.
        value: u64,
        /// The minimum.
        least: u64,
        /// The maximum.
        most: u64,
    },
    /// A value is refused for another reason.
    #[error("`{name}` is {value}; it must be {what}")]
    Value {
        /// Section and key.
        name: &'static str,
        /// The value found.
        value: String,
        /// What is allowed.
        what: String,
    },
}

impl From<toml::de::Error> for ParameterError {
    fn from(error: toml::de::Error) -> ParameterError {
        ParameterError::Form(fault(&error))
    }
}

/// Reads parameters.
///
/// # Errors
/// [`ParameterError::Form`] with line and column for unknown keys, missing keys and wrong types.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, ParameterError> {
    Ok(toml::from_str(text)?)
}

/// Checks that numbers are in their ranges.
///
/// # Errors
/// The first number out of range, as [`ParameterError::Range`].
pub fn within(
    ranges: impl IntoIterator<Item = (&'static str, u64, RangeInclusive<u64>)>,
) -> Result<(), ParameterError> {
    match ranges.into_iter().find(|(_, value, range)| !range.contains(value)) {
        Some((name, value, range)) => {
            let (least, most) = range.into_inner();
            Err(ParameterError::Range { name, value, least, most })
        }
        None => Ok(()),
    }
}

/// Checks a value: `fits` says whether it is allowed, and `what` describes the allowed values.
///
/// # Errors
/// [`ParameterError::Value`] if it is not.
pub fn demand(
    name: &'static str,
    value: &dyn ToString,
    fits: bool,
    what: impl Into<String>,
) -> Result<(), ParameterError> {
    match fits {
        true => Ok(()),
        false => Err(ParameterError::Value { name, value: value.to_string(), what: what.into() }),
    }
}

/// Where a text is not TOML of the expected form, and why.
pub(crate) fn fault(error: &toml::de::Error) -> String {
    let in_line = |text: &str| text.trim_end().replace('\n', ", ");
    // Only the error knows the line or the key: it has seen the text or the table.
    let told = error.to_string();
    match told.lines().next().and_then(|first| first.strip_prefix("TOML parse error at ")) {
        Some(place) => format!("{place}: {}", in_line(error.message())),
        None => in_line(&told),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An error of form is one line, with its place if it has one.
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

    /// An error of a value has its name, the value, and what is allowed; a valid value gives no
    /// error.
    #[test]
    fn values_are_judged_by_name() {
        assert_eq!(within([("a", 1, 1..=1), ("b", 7, 0..=9)]), Ok(()));
        let told = within([("a", 1, 1..=1), ("b", 10, 0..=9)]).unwrap_err();
        assert_eq!(told.to_string(), "`b` is 10; it must lie in 0..=9");
        assert_eq!(demand("c", &"3 B", true, "a power of two"), Ok(()));
        let told = demand("c", &"3 B", false, "a power of two").unwrap_err();
        assert_eq!(told.to_string(), "`c` is 3 B; it must be a power of two");
        let told = read::<std::collections::BTreeMap<String, u8>>("a = true").unwrap_err();
        assert!(told.to_string().starts_with("the configuration cannot be read: line 1"), "{told}");
    }
}
