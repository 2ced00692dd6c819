//! Why calls are refused, for people who ask by `BELLWIRE_LOG`.

use std::fmt::Display;
use std::sync::OnceLock;

/// Says it on standard error, if it is asked for.
pub fn say(what: impl Display) {
    static WANTED: OnceLock<bool> = OnceLock::new();
    let is_wanted = || std::env::var_os("BELLWIRE_LOG").is_some_and(|value| value != "0");
    if *WANTED.get_or_init(is_wanted) {
        eprintln!("bellwire: sockets: {what}");
    }
}
