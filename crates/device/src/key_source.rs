//! Where a device gets the text of its key file from.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// A source of keys for a network device. The text is that of a key file, as `bellwire key new`
/// writes it: `shared KEY`, or `private KEY` and lines `peer KEY NAME`.
#[derive(Clone)]
pub enum KeySource {
    /// A file that only its owner can read.
    File(PathBuf),
    /// Asked once for each opening of a device. An error refuses the opening.
    Callback(KeyCallback),
}

/// Gives the text of a key file.
pub type KeyCallback = Arc<dyn Fn() -> io::Result<String> + Send + Sync>;

impl KeySource {
    /// A key that the program has in memory.
    pub fn text(text: impl Into<String>) -> KeySource {
        let text = text.into();
        KeySource::callback(move || Ok(text.clone()))
    }

    /// A key that `ask` gives when a device is opened, for instance from a store of secrets.
    pub fn callback(ask: impl Fn() -> io::Result<String> + Send + Sync + 'static) -> KeySource {
        KeySource::Callback(Arc::new(ask))
    }
}

impl fmt::Debug for KeySource {
    /// Hides the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeySource::File(path) => write!(f, "the key file {}", path.display()),
            KeySource::Callback(_) => f.write_str("a key of the program"),
        }
    }
}
