//! The text of a key file.
//!
//! ```text
//! # comment
//! shared 64 hexadecimal digits
//! ```
//! or
//! ```text
//! private 64 hexadecimal digits
//! peer    64 hexadecimal digits, then a name
//! ```

use crate::keys::{KEY_BYTES, Key, Keys, public_of};
use bellwire_wire::frame::keyed::TAGS;

/// A key file.
#[derive(Clone, PartialEq, Eq)]
pub enum KeyFile {
    /// Whoever has this key may talk to whoever else has it.
    Shared(Key),
    /// The owner of a private key talks to the peers whose public keys are listed.
    Private {
        /// The private key.
        key: Key,
        /// Public keys of peers, with a name each, which is for people.
        peers: Vec<(Key, String)>,
    },
}

/// Why a text is no key file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum KeyFileError {
    /// A line has none of the forms.
    #[error(
        "line {0} is none of \"shared KEY\", \"private KEY\" and \"peer KEY NAME\", where KEY has 64 hexadecimal digits"
    )]
    Line(usize),
    /// There is no key, or more than one.
    #[error("it must have exactly one line \"shared KEY\" or \"private KEY\"")]
    NotOneKey,
    /// Peers are listed beside a shared key.
    #[error("a file with a shared key lists no peers: whoever has the key is one")]
    PeersOfShared,
    /// A listed key is ours, or no point of the curve that proves anything.
    #[error("the key of the peer in line {0} is our own, or no public key")]
    BadPeer(usize),
    /// The list is too long.
    #[error("it lists {0} peers, and {TAGS} are possible: larger groups can share a key")]
    TooManyPeers(usize),
}

impl KeyFile {
    /// Reads the text of a key file.
    ///
    /// # Errors
    /// [`KeyFileError`].
    pub fn parse(text: &str) -> Result<KeyFile, KeyFileError> {
        let mut own = Vec::new();
        let mut peers = Vec::new();
        let mut lines = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let bad = KeyFileError::Line(number);
            let (word, rest) = line.split_once(char::is_whitespace).ok_or(bad.clone())?;
            let (digits, name) =
                rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
            let key = parse_key(digits).ok_or(bad.clone())?;
            match word {
                "shared" | "private" if name.is_empty() => own.push((word == "shared", key)),
                "peer" => {
                    peers.push((key, name.trim().to_owned()));
                    lines.push(number);
                }
                _ => return Err(bad),
            }
        }
        let [(is_shared, key)] = own[..] else { return Err(KeyFileError::NotOneKey) };
        if is_shared {
            return if peers.is_empty() {
                Ok(KeyFile::Shared(key))
            } else {
                Err(KeyFileError::PeersOfShared)
            };
        }
        if peers.len() > TAGS {
            return Err(KeyFileError::TooManyPeers(peers.len()));
        }
        for ((peer, _), line) in peers.iter().zip(lines) {
            Keys::listed(&key, &[*peer]).map_err(|_| KeyFileError::BadPeer(line))?;
        }
        Ok(KeyFile::Private { key, peers })
    }

    /// The text, which [`KeyFile::parse`] reads.
    pub fn print(&self) -> String {
        match self {
            KeyFile::Shared(key) => format!(
                "# Bellwire: whoever has this file may talk to whoever else has it.\nshared {}\n",
                print_key(key)
            ),
            KeyFile::Private { key, peers } => {
                let mut text = format!(
                    "# Bellwire: the private key of one program or host. Its public key is\n# {}\nprivate {}\n",
                    print_key(&public_of(key)),
                    print_key(key)
                );
                for (peer, name) in peers {
                    text += format!("peer {} {name}", print_key(peer)).trim_end();
                    text += "\n";
                }
                text
            }
        }
    }

    /// The keys for [`crate::Sessions`].
    pub fn keys(&self) -> Keys {
        match self {
            KeyFile::Shared(key) => Keys::shared(key),
            KeyFile::Private { key, peers } => {
                let peers: Vec<Key> = peers.iter().map(|(peer, _)| *peer).collect();
                Keys::listed(key, &peers).expect("the file was checked")
            }
        }
    }
}

/// A key of 64 hexadecimal digits.
pub fn parse_key(digits: &str) -> Option<Key> {
    let digits = digits.as_bytes();
    if digits.len() != 2 * KEY_BYTES {
        return None;
    }
    let mut key = [0; KEY_BYTES];
    for (byte, pair) in key.iter_mut().zip(digits.chunks(2)) {
        let digit = |digit: u8| (digit as char).to_digit(16);
        *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
    }
    Some(key)
}

/// The 64 hexadecimal digits of a key.
pub fn print_key(key: &Key) -> String {
    key.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both kinds of files parse back, with comments and blank lines.
    #[test]
    fn files_parse_back() {
        let peers = vec![
            (public_of(&[7; 32]), "near host".to_owned()),
            (public_of(&[8; 32]), String::new()),
        ];
        for file in [KeyFile::Shared([5; 32]), KeyFile::Private { key: [6; 32], peers }] {
            assert!(KeyFile::parse(&file.print()) == Ok(file.clone()));
            assert!(KeyFile::parse(&format!("\n# a\n  {}\n", file.print())) == Ok(file));
        }
    }

    /// Each wrong line is named.
    #[test]
    fn wrong_files_are_refused() {
        let own = print_key(&[6; 32]);
        let public = print_key(&public_of(&[6; 32]));
        let other = print_key(&public_of(&[7; 32]));
        let many = format!("private {own}\n") + &format!("peer {other}\n").repeat(TAGS + 1);
        for (text, why) in [
            (String::new(), KeyFileError::NotOneKey),
            (format!("shared {own}\nprivate {own}"), KeyFileError::NotOneKey),
            (format!("shared {own} name"), KeyFileError::Line(1)),
            (format!("\nshared {}", &own[1..]), KeyFileError::Line(2)),
            (format!("shared {}g", &own[1..]), KeyFileError::Line(1)),
            ("shared".to_owned(), KeyFileError::Line(1)),
            (format!("secret {own}"), KeyFileError::Line(1)),
            (format!("shared {own}\npeer {other}"), KeyFileError::PeersOfShared),
            (format!("private {own}\npeer {public}"), KeyFileError::BadPeer(2)),
            (format!("private {own}\n\npeer {}", "0".repeat(64)), KeyFileError::BadPeer(3)),
            (many, KeyFileError::TooManyPeers(TAGS + 1)),
        ] {
            assert!(KeyFile::parse(&text) == Err(why.clone()), "{why}");
        }
    }
}
