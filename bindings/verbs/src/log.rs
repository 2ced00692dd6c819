//! Why calls are refused, for people who ask by `BELLWIRE_LOG`.

use std::fmt::Display;
use std::sync::OnceLock;

/// Whether the variable is set.
fn is_wanted() -> bool {
    static WANTED: OnceLock<bool> = OnceLock::new();
    *WANTED.get_or_init(|| std::env::var_os("BELLWIRE_LOG").is_some_and(|value| value != "0"))
}

/// A call was refused.
pub fn refused(what: &str, why: &impl Display) {
    if is_wanted() {
        eprintln!("bellwire: {what}: {why}");
    }
}
