//! Who has which function: asked of the kernel, which lists all packet sockets and their filters.
//!
//! So the agent remembers nothing. A socket whose program has ended is gone from the list. One that
//! an earlier agent has given stands there. It is there also after its owner has bound it elsewhere
//! or given it to another process, because its filter cannot be changed.
//!
//! ```text
//!   request   nlmsghdr (16 bytes) | family 1, protocol 1, pad 2, inode 4, show 4, cookie 8
//!   answer    nlmsghdr (16 bytes) | family 1, type 1, number 2, inode 4, cookie 8 | attributes
//!   attribute length 2, type 2, bytes, padding to 4
//! ```
//! Numbers are in the machine's byte order (`linux/netlink.h`, `linux/packet_diag.h`).

use crate::packet::filter::{self, INSTRUCTIONS};
use crate::socket;
use std::io;
use std::os::fd::AsFd;

const HEADER_BYTES: usize = 16;
const MESSAGE_BYTES: usize = 16;
const INSTRUCTION_BYTES: usize = 8;

/// `SOCK_DIAG_BY_FAMILY`: the request, and each answer to it.
const BY_FAMILY: u16 = 20;
/// `NLM_F_REQUEST | NLM_F_DUMP`.
const REQUEST_DUMP: u16 = 0x301;
/// `PACKET_SHOW_FILTER`.
const SHOW: u32 = 0x20;
/// `PACKET_DIAG_FILTER`.
const FILTER: u16 = 7;

/// A packet socket that only takes frames of one function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Owner {
    /// Number of the interface.
    pub index: u32,
    pub function: u8,
    pub user: u32,
}

/// All owners in this network namespace.
///
/// # Errors
/// What the kernel says: without CAP_NET_ADMIN it shows no filters, and without `packet_diag` it
/// knows no such request (`NotFound`).
pub(super) fn all() -> io::Result<Vec<Owner>> {
    let asking = socket::open(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_SOCK_DIAG)?;
    socket::send(asking.as_fd(), &request())?;
    let mut owners = Vec::new();
    let mut room = vec![0; 64 << 10];
    loop {
        let length = socket::receive(asking.as_fd(), &mut room)?;
        if collect(room.get(..length).unwrap_or_default(), &mut owners)? {
            return Ok(owners);
        }
    }
}

fn request() -> [u8; HEADER_BYTES + 20] {
    let mut request = [0; HEADER_BYTES + 20];
    request[0..4].copy_from_slice(&((HEADER_BYTES + 20) as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    request[6..8].copy_from_slice(&REQUEST_DUMP.to_ne_bytes());
    request[16] = libc::AF_PACKET as u8;
    request[24..28].copy_from_slice(&SHOW.to_ne_bytes());
    request
}

/// Adds the owners of one part of the answer. Returns whether it is the last part.
fn collect(mut part: &[u8], owners: &mut Vec<Owner>) -> io::Result<bool> {
    while part.len() >= HEADER_BYTES {
        let length = number(part, 0) as usize;
        let kind = half(part, 4);
        let Some(message) = part.get(HEADER_BYTES..length) else { break };
        match i32::from(kind) {
            libc::NLMSG_DONE => return Ok(true),
            libc::NLMSG_ERROR if message.len() >= 4 => {
                return Err(io::Error::from_raw_os_error(-(number(message, 0) as i32)));
            }
            _ if kind == BY_FAMILY => {
                let attributes = message.get(MESSAGE_BYTES..).unwrap_or_default();
                owners.extend(find(attributes, FILTER).and_then(owner_of));
            }
            _ => {}
        }
        part = part.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

/// The bytes of the attribute of this kind.
fn find(mut attributes: &[u8], kind: u16) -> Option<&[u8]> {
    while attributes.len() >= 4 {
        let length = usize::from(half(attributes, 0));
        let value = attributes.get(4..length)?;
        if half(attributes, 2) == kind {
            return Some(value);
        }
        attributes = attributes.get(length.next_multiple_of(4)..)?;
    }
    None
}

/// Whose socket has this filter; `None` if the filter is not one of ours.
fn owner_of(filter: &[u8]) -> Option<Owner> {
    if filter.len() != INSTRUCTIONS * INSTRUCTION_BYTES {
        return None;
    }
    let steps = filter.chunks_exact(INSTRUCTION_BYTES);
    let steps: Vec<_> =
        steps.map(|step| (half(step, 0), step[2], step[3], number(step, 4))).collect();
    let (user, index) = (steps[0].3, steps[2].3);
    let function = u8::try_from(steps[9].3).ok()?;
    let is_ours = steps == filter::program(index, function, user);
    is_ours.then_some(Owner { index, function, user })
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::Interface;
    use crate::packet::{PacketIo, socket_for};
    use crate::testing::{enter_new_namespace, ip};
    use std::time::{Duration, Instant};

    /// All owners are listed, whoever opened their sockets, as long as these exist. Other packet
    /// sockets are not.
    #[test]
    fn owners_are_listed() {
        enter_new_namespace()
            .and_then(|()| ip("link add near type veth peer name far\nlink set near up"))
            .expect("NOT RUN: making a network namespace needs root, and ip of iproute2");
        let near = Interface::find("near").expect("it was just made");
        assert_eq!(all().expect("rights"), []);
        let _other = socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0).expect("rights");
        let direct = PacketIo::open(&near, 3).expect("rights");
        let given: Vec<_> = (0..200u8)
            .map(|function| socket_for(&near, function, 1000 + u32::from(function), 1))
            .collect::<io::Result<_>>()
            .expect("rights");
        let owner = |function, user| Owner { index: near.index, function, user };
        let listed = all().expect("rights");
        assert_eq!(listed.len(), 201);
        for function in 0..200 {
            assert!(listed.contains(&owner(function, 1000 + u32::from(function))));
        }
        let own = rustix::process::geteuid().as_raw();
        assert!(listed.contains(&owner(3, own)));
        // A process that is just being started still has copies of the descriptors.
        let becomes = |expected: &[Owner]| {
            let since = Instant::now();
            while all().expect("rights") != expected {
                assert!(since.elapsed() < Duration::from_secs(8), "{:?}", all());
            }
        };
        drop(given);
        becomes(&[owner(3, own)]);
        drop(direct);
        becomes(&[]);
    }

    /// Whatever an answer holds, reading it ends, and only whole filters of ours count.
    #[test]
    fn answers_are_read_with_care() {
        let steps = filter::program(2, 7, 1000);
        let filter: Vec<u8> = steps
            .iter()
            .flat_map(|&(code, yes, no, value)| {
                let mut bytes = [0; INSTRUCTION_BYTES];
                bytes[0..2].copy_from_slice(&code.to_ne_bytes());
                (bytes[2], bytes[3]) = (yes, no);
                bytes[4..8].copy_from_slice(&value.to_ne_bytes());
                bytes
            })
            .collect();
        let owner = Owner { index: 2, function: 7, user: 1000 };
        assert_eq!(owner_of(&filter), Some(owner));
        for at in 0..filter.len() {
            // The user, the interface and the function may differ.
            let is_value = [4..8, 20..24, 76..80].iter().any(|values| values.contains(&at));
            let mut other = filter.clone();
            other[at] ^= 1;
            assert_eq!(owner_of(&other).is_some(), is_value && !(77..80).contains(&at), "{at}");
        }
        let attribute = |kind: u16, value: &[u8]| {
            let length = 4 + value.len() as u16;
            [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat()
        };
        let body = [vec![0; MESSAGE_BYTES], attribute(1, &[0; 4]), attribute(FILTER, &filter)];
        let message = |kind: u16, body: &[u8]| {
            let length = (HEADER_BYTES + body.len()) as u32;
            [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10], body].concat()
        };
        let one = message(BY_FAMILY, &body.concat());
        let done = message(libc::NLMSG_DONE as u16, &[0; 4]);
        let mut owners = Vec::new();
        let whole = [&one[..], &one, &done].concat();
        assert!(collect(&whole, &mut owners).expect("no error"));
        assert_eq!(owners, [owner; 2]);
        for length in 0..whole.len() {
            owners.clear();
            let ended = collect(&whole[..length], &mut owners).expect("no error");
            assert!(!ended && owners.len() <= 2, "{length}");
        }
        let error = message(libc::NLMSG_ERROR as u16, &(-libc::ENOENT).to_ne_bytes());
        let error = collect(&error, &mut owners).expect_err("an error");
        assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
        // Neither an error without its number nor a message of another kind counts.
        let others = [message(libc::NLMSG_ERROR as u16, &[0; 3]), message(99, &body.concat())];
        owners.clear();
        assert!(!collect(&others[0], &mut owners).expect("no error"));
        assert!(!collect(&others[1], &mut owners).expect("no error"));
        assert_eq!(owners, []);
        assert!(find(&[0, 0, 7, 0], FILTER).is_none(), "an attribute without a length");
    }
}
