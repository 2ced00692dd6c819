//! Which user holds a socket name that is taken.
//!
//! An abstract name belongs to the process that binds it first; no permission is needed. So another
//! user can take a name that we need (a squat). Credentials of a connection name the user of a
//! socket that listens; nobody can connect to one that is only bound. The kernel's socket diagnosis
//! (`unix_diag`, Linux 5.3) names the user of both, without a connection and without a privilege.
//!
//! ```text
//!   request   nlmsghdr (16 bytes) | family 1, protocol 1, pad 2, states 4, inode 4, show 4,
//!                                   cookie 8
//!   answer    nlmsghdr (16 bytes) | family 1, type 1, state 1, pad 1, inode 4, cookie 8
//!                                   | attributes
//!   attribute length 2, type 2, bytes, padding to 4
//! ```
//! Numbers are in the machine's byte order (`linux/netlink.h`, `linux/unix_diag.h`).

use crate::name::PREFIX;
use crate::socket;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink};
use std::collections::HashMap;

const HEADER_BYTES: usize = 16;
const MESSAGE_BYTES: usize = 16;
const REQUEST_BYTES: usize = HEADER_BYTES + 24;

/// `SOCK_DIAG_BY_FAMILY`: the request, and each answer to it.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const REQUEST_DUMP: u16 = 0x301;
/// `UDIAG_SHOW_NAME | UDIAG_SHOW_UID`.
const SHOW: u32 = 0x41;
/// `UNIX_DIAG_NAME`, `UNIX_DIAG_UID`.
const NAME: u16 = 0;
const UID: u16 = 7;
/// `TCP_CLOSE` and `TCP_LISTEN`: a name that is held. An accepted connection shows its listener's
/// name and is `TCP_ESTABLISHED`.
const HOLDING: [u8; 2] = [7, 10];

/// The holders of all names of ours, at one moment.
#[derive(Default)]
pub struct Holders {
    users: HashMap<String, User>,
}

/// What the sockets of one name tell about its user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum User {
    /// The socket holds the name.
    Holds(u32),
    /// Only connected sockets have the name: one that was bound and then connected, or an accepted
    /// one.
    Connected(u32),
    /// Connected sockets of several users have it.
    Several,
}

impl Holders {
    /// Asks the kernel. If it does not answer, no user is known.
    pub fn now() -> Holders {
        let mut holders = Holders::default();
        // Entries that were read before an error count.
        let _ = holders.read();
        holders
    }

    /// Like [`Holders::user_of`]. Asks the kernel again for a name that was taken since.
    pub fn user_of_taken(&mut self, name: &str) -> Option<u32> {
        if !self.users.contains_key(name) {
            *self = Holders::now();
        }
        self.user_of(name)
    }

    /// The user who holds a name that is taken; `None`: the kernel does not tell.
    pub fn user_of(&self, name: &str) -> Option<u32> {
        if bellwire_ring::canary::planted("holder-unnamed") {
            return None;
        }
        self.listed_user_of(name).or_else(|| listening_user(name))
    }

    /// Like [`Holders::user_of`], but does not connect to a name that is missing in the kernel's
    /// table.
    pub fn listed_user_of(&self, name: &str) -> Option<u32> {
        match self.users.get(name)? {
            User::Holds(user) | User::Connected(user) => Some(*user),
            User::Several => None,
        }
    }

    fn read(&mut self) -> rustix::io::Result<()> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let protocol = Some(netlink::SOCK_DIAG);
        let kernel =
            rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, protocol)?;
        rustix::net::send(&kernel, &request(), SendFlags::empty())?;
        // The kernel prepares the next part of its answer while we read the current one. So a part
        // is always available until the last.
        let mut part = vec![0; 32 * 1024];
        loop {
            let (length, _) = rustix::net::recv(&kernel, &mut part[..], RecvFlags::empty())?;
            if !self.take(&part[..length]) {
                return Ok(());
            }
        }
    }

    /// Parses one part of the answer. Returns whether another follows.
    fn take(&mut self, mut part: &[u8]) -> bool {
        if part.is_empty() {
            return false;
        }
        while let Some(length) = word(part, 0).map(|length| length as usize) {
            let Some(message) = part.get(..length).filter(|_| length >= HEADER_BYTES) else {
                return false;
            };
            // Anything else is the end or an error.
            if half(message, 4) != Some(BY_FAMILY) {
                return false;
            }
            self.note(&message[HEADER_BYTES..]);
            part = part.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        true
    }

    /// Notes one socket.
    fn note(&mut self, message: &[u8]) {
        let sequenced = SocketType::SEQPACKET.as_raw() as u8;
        if message.len() < MESSAGE_BYTES || message[1] != sequenced {
            return;
        }
        let state = message[2];
        let (mut name, mut user) = (None, None);
        let mut rest = &message[MESSAGE_BYTES..];
        while let (Some(length), Some(kind)) = (half(rest, 0), half(rest, 2)) {
            let Some(value) = rest.get(4..length.into()) else { return };
            match kind {
                NAME => name = value.strip_prefix(&[0]).and_then(|name| str::from_utf8(name).ok()),
                UID => user = word(value, 0),
                _ => {}
            }
            rest = rest.get(usize::from(length).next_multiple_of(4)..).unwrap_or_default();
        }
        let (Some(name), Some(user)) = (name, user) else { return };
        if !name.starts_with(PREFIX) {
            return;
        }
        let seen = self.users.get(name).copied();
        let told = match seen {
            _ if HOLDING.contains(&state) => User::Holds(user),
            Some(User::Holds(holder)) => User::Holds(holder),
            None => User::Connected(user),
            Some(User::Connected(other)) if other == user => User::Connected(user),
            Some(User::Connected(_) | User::Several) => User::Several,
        };
        self.users.insert(name.to_owned(), told);
    }
}

/// The user who listens at a name.
fn listening_user(name: &str) -> Option<u32> {
    let connection = socket::connect(name).ok()?;
    socket::credentials(&connection).ok().map(|(_, user, _)| user)
}

/// Asks for all Unix sockets, with names and users.
fn request() -> [u8; REQUEST_BYTES] {
    let mut request = [0; REQUEST_BYTES];
    let mut put = |at: usize, bytes: &[u8]| request[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, &(REQUEST_BYTES as u32).to_ne_bytes());
    put(4, &BY_FAMILY.to_ne_bytes());
    put(6, &REQUEST_DUMP.to_ne_bytes());
    put(HEADER_BYTES, &[AddressFamily::UNIX.as_raw() as u8]);
    put(HEADER_BYTES + 4, &u32::MAX.to_ne_bytes());
    put(HEADER_BYTES + 12, &SHOW.to_ne_bytes());
    request
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One answer of the kernel.
    fn answer(kind: u8, state: u8, attributes: &[(u16, &[u8])]) -> Vec<u8> {
        let mut body = vec![1, kind, state, 0];
        body.resize(MESSAGE_BYTES, 0);
        for (number, value) in attributes {
            body.extend((value.len() as u16 + 4).to_ne_bytes());
            body.extend(number.to_ne_bytes());
            body.extend(*value);
            body.resize(body.len().next_multiple_of(4), 0);
        }
        let mut message = vec![0; HEADER_BYTES];
        message[..4].copy_from_slice(&((HEADER_BYTES + body.len()) as u32).to_ne_bytes());
        message[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        [message, body].concat()
    }

    fn taken(parts: &[Vec<u8>]) -> Holders {
        let mut holders = Holders::default();
        for part in parts {
            assert!(holders.take(part));
        }
        holders
    }

    /// Sockets that are bound, listening, or connected after a bind are all seen to hold their
    /// names. The sockets that a listener accepted do not hide the holder.
    #[test]
    fn holders_are_told_from_connections() {
        let name: &[u8] = b"\0bellwire.shm/1/job/0";
        let socket =
            |state, user: u32| answer(5, state, &[(NAME, name), (UID, &user.to_ne_bytes())]);
        let of = |parts: &[Vec<u8>]| taken(parts).users.get("bellwire.shm/1/job/0").copied();
        assert_eq!(of(&[socket(7, 8)]), Some(User::Holds(8)));
        assert_eq!(of(&[socket(10, 9), socket(1, 0)]), Some(User::Holds(9)));
        assert_eq!(of(&[[socket(1, 0), socket(10, 9)].concat()]), Some(User::Holds(9)));
        assert_eq!(of(&[socket(1, 7), socket(1, 7)]), Some(User::Connected(7)));
        assert_eq!(of(&[socket(1, 7), socket(1, 8)]), Some(User::Several));
        assert_eq!(of(&[answer(2, 7, &[(NAME, name), (UID, &[1; 4])])]), None, "a datagram socket");
        assert_eq!(of(&[answer(5, 7, &[(NAME, name)])]), None, "no user");
    }

    /// Truncated answers, and answers with wrong lengths, cause no panic.
    #[test]
    fn broken_answers_are_survived() {
        let mut short = answer(5, 7, &[]);
        short.truncate(HEADER_BYTES + MESSAGE_BYTES - 1);
        let length = (short.len() as u32).to_ne_bytes();
        short[..4].copy_from_slice(&length);
        Holders::default().take(&short);
        let whole = answer(5, 7, &[(NAME, b"\0bellwire.shm/1/j/0"), (UID, &[0; 4])]);
        for cut in 0..whole.len() {
            Holders::default().take(&whole[..cut]);
            for value in [0, 1, 255] {
                let mut changed = whole.clone();
                changed[cut] = value;
                Holders::default().take(&changed);
            }
        }
    }

    /// The kernel of this machine names the user of a bound socket, and of a listening one.
    #[test]
    fn the_kernel_names_the_holder() {
        let name = |what| format!("{PREFIX}/test/holder-{}-{what}", std::process::id());
        let _bound = socket::reserve(&name("bound")).expect("a name of ours");
        let _listens = socket::listen(&name("listens")).expect("a name of ours");
        let own = Some(rustix::process::geteuid().as_raw());
        let holders = Holders::now();
        assert_eq!(holders.user_of(&name("listens")), own);
        assert_eq!(holders.user_of(&name("bound")), own, "needs unix_diag of Linux 5.3");
        assert_eq!(holders.user_of(&name("free")), None);
        // Names that were taken since are asked for anew, and one that listens tells by itself.
        let mut before = Holders::default();
        assert_eq!(before.user_of(&name("bound")), None);
        assert_eq!(before.user_of(&name("listens")), own);
        assert_eq!(before.user_of_taken(&name("free")), None);
        let mut before = Holders::default();
        assert_eq!(before.user_of_taken(&name("bound")), own);
    }
}
