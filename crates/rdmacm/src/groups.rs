//! The multicast groups that a program has joined by one identifier.

use std::io;
use std::net::Ipv4Addr;

/// Groups of one identifier.
pub const GROUPS: usize = 128;

/// The memberships of an identifier. A group that is joined twice is left twice.
#[derive(Debug, Default)]
pub struct Groups {
    joined: Vec<Membership>,
}

#[derive(Clone, Copy, Debug)]
struct Membership {
    group: Ipv4Addr,
    /// The identifier's queue pair is attached; otherwise it only sends.
    receives: bool,
}

impl Groups {
    /// Whether another group may be joined, and whether the address is a group's.
    ///
    /// # Errors
    /// `EINVAL`, `ENOMEM`.
    pub fn check(&self, group: Ipv4Addr) -> io::Result<()> {
        if !group.is_multicast() {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        if self.joined.len() >= GROUPS {
            return Err(io::Error::from_raw_os_error(libc::ENOMEM));
        }
        Ok(())
    }

    /// Remembers a membership that [`Groups::check`] allowed.
    pub fn join(&mut self, group: Ipv4Addr, receives: bool) {
        self.joined.push(Membership { group, receives });
    }

    /// Forgets a membership, the newest of this group first. `true`: the queue pair is to be
    /// detached, because no other membership of the group receives.
    ///
    /// # Errors
    /// `EADDRNOTAVAIL`: the group was not joined.
    pub fn leave(&mut self, group: Ipv4Addr) -> io::Result<bool> {
        let place = self.joined.iter().rposition(|membership| membership.group == group);
        let place = place.ok_or_else(|| io::Error::from_raw_os_error(libc::EADDRNOTAVAIL))?;
        let left = self.joined.remove(place);
        let is_last = !self.joined.iter().any(|other| other.group == group && other.receives);
        Ok(left.receives && is_last)
    }

    /// The queue pair ends: nothing receives any more. Returns the groups that it was attached to.
    pub fn release(&mut self) -> Vec<Ipv4Addr> {
        let mut attached = Vec::new();
        for membership in &mut self.joined {
            if std::mem::take(&mut membership.receives) && !attached.contains(&membership.group) {
                attached.push(membership.group);
            }
        }
        attached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Ipv4Addr = Ipv4Addr::new(239, 1, 1, 1);
    const TWO: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 251);

    fn errno<T: std::fmt::Debug>(result: io::Result<T>) -> i32 {
        result.unwrap_err().raw_os_error().unwrap()
    }

    /// A queue pair is detached by the last membership that receives, and by its own end.
    #[test]
    fn the_last_membership_detaches() {
        let mut groups = Groups::default();
        assert_eq!(errno(groups.leave(ONE)), libc::EADDRNOTAVAIL);
        groups.join(ONE, true);
        groups.join(TWO, false);
        groups.join(ONE, true);
        assert!(!groups.leave(ONE).unwrap(), "it was joined twice");
        assert!(!groups.leave(TWO).unwrap(), "it only sends");
        assert!(groups.leave(ONE).unwrap());
        assert_eq!(errno(groups.leave(ONE)), libc::EADDRNOTAVAIL);
        groups.join(ONE, true);
        groups.join(ONE, true);
        groups.join(TWO, false);
        assert_eq!(groups.release(), [ONE]);
        assert!(!groups.leave(ONE).unwrap(), "its queue pair has ended");
    }

    /// Other addresses and too many groups are refused.
    #[test]
    fn wrong_and_too_many_groups_are_refused() {
        let mut groups = Groups::default();
        for wrong in [Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED, Ipv4Addr::BROADCAST] {
            assert_eq!(errno(groups.check(wrong)), libc::EINVAL);
        }
        for _ in 0..GROUPS {
            groups.check(ONE).unwrap();
            groups.join(ONE, true);
        }
        assert_eq!(errno(groups.check(TWO)), libc::ENOMEM);
        groups.leave(ONE).unwrap();
        groups.check(TWO).unwrap();
    }
}
