//! Device names `shm:JOB[?option=value&...]`, and the socket names made from them.
//!
//! Processes find each other by abstract Unix sockets: names without files, which the kernel takes
//! back however their owner ends. `JOB` is any short text without `/`, `?` and control characters.
//!
//! | socket | bound by | means |
//! |---|---|---|
//! | `bellwire.shm/SCOPE/JOB/NODE` | the device | the node number is taken |
//! | `bellwire.shm/SCOPE/JOB/NODE/FUNCTION` | the function | peers connect here |
//!
//! `SCOPE` is the user's number, so that jobs of two users do not meet, or `any` if the device is
//! open to others.

use bellwire_device::{AccessMode, FunctionAddress};

/// A job: the name space of nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// Who may join and connect.
    pub access: AccessMode,
}

/// Longest job name, in bytes: a socket name has 108.
pub const JOB_BYTES: usize = 48;

/// `__SO_ACCEPTCON` of linux/net.h.
const ACCEPTS: u32 = 1 << 16;

/// The prefix of all names.
pub(crate) const PREFIX: &str = "bellwire.shm";

impl Job {
    /// Checks a job's name.
    pub fn new(name: &str, access: AccessMode) -> Result<Job, String> {
        if name.is_empty() {
            return Err("the job has no name".into());
        }
        if name.len() > JOB_BYTES {
            return Err(format!("the job's name has {} bytes, more than {JOB_BYTES}", name.len()));
        }
        if let Some(bad) =
            name.chars().find(|c| c.is_control() || c.is_whitespace() || "/?&".contains(*c))
        {
            return Err(format!(
                "the job's name holds {bad:?}; use letters, digits, '-', '_' and '.'"
            ));
        }
        Ok(Job { name: name.into(), access })
    }

    fn scope(&self) -> String {
        match self.access {
            AccessMode::Owner => rustix::process::geteuid().as_raw().to_string(),
            AccessMode::Group(_) | AccessMode::Everyone => "any".into(),
        }
    }

    /// Name of the socket that reserves a node.
    pub fn node_socket(&self, node: u32) -> String {
        format!("{PREFIX}/{}/{}/{node}", self.scope(), self.name)
    }

    /// Name of the socket that a function listens at.
    pub fn function_socket(&self, address: FunctionAddress) -> String {
        format!("{}/{}", self.node_socket(address.node), address.function)
    }

    /// Whether a process of this user and group may connect.
    pub fn admits(&self, user: u32, group: u32) -> bool {
        self.admits_to(rustix::process::geteuid().as_raw(), user, group)
    }

    /// Whether a process of this user and group may connect to one of user `own`.
    fn admits_to(&self, own: u32, user: u32, group: u32) -> bool {
        match self.access {
            AccessMode::Everyone => true,
            AccessMode::Group(allowed) => user == own || user == 0 || group == allowed,
            AccessMode::Owner => user == own || user == 0,
        }
    }

    /// Whether no process of `user` may connect, whatever its group is.
    pub(crate) fn refuses(&self, user: u32) -> bool {
        match self.access {
            AccessMode::Owner => !self.admits(user, u32::MAX),
            AccessMode::Group(_) | AccessMode::Everyone => false,
        }
    }
}

/// Whether this process runs as `user`.
pub(crate) fn is_own(user: u32) -> bool {
    user == rustix::process::geteuid().as_raw()
}

/// A function that listens somewhere on this host.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Listening {
    /// User number, or `any`.
    pub scope: String,
    /// Job name.
    pub job: String,
    /// Node and function.
    pub address: FunctionAddress,
}

/// All functions that listen on this host, of any job and user.
pub fn listening() -> std::io::Result<Vec<Listening>> {
    let table = std::fs::read_to_string("/proc/net/unix")?;
    let mut found: Vec<_> = table.lines().filter(is_accepting).filter_map(parse_line).collect();
    found.sort();
    found.dedup();
    Ok(found)
}

/// Whether a line of the kernel's table is of a socket that accepts connections. One that is bound
/// and does not listen yet has its name, and so has each connection that it has accepted.
fn is_accepting(line: &&str) -> bool {
    let flags = line.split_ascii_whitespace().nth(3);
    flags.and_then(|flags| u32::from_str_radix(flags, 16).ok()).is_some_and(|f| f & ACCEPTS != 0)
}

pub(crate) fn parse_line(line: &str) -> Option<Listening> {
    let (_, name) = line.rsplit_once('@')?;
    let mut parts = name.strip_prefix(PREFIX)?.strip_prefix('/')?.split('/');
    let found = Listening {
        scope: parts.next()?.into(),
        job: parts.next()?.into(),
        address: FunctionAddress {
            node: parts.next()?.parse().ok()?,
            function: parts.next()?.parse().ok()?,
        },
    };
    parts.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;
    use std::time::{Duration, Instant};

    /// Longer than a process takes to execute its program on a busy machine.
    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn job_names_are_checked() {
        assert!(Job::new("job", AccessMode::Owner).is_ok());
        for bad in ["", "a/b", "a b", "a?b", "a\nb", &"x".repeat(49)] {
            assert!(Job::new(bad, AccessMode::Owner).is_err(), "{bad:?}");
        }
    }

    /// Root, the own user, and whom the job names may connect. Jobs of two users have names apart.
    #[test]
    fn a_job_admits_whom_it_names() {
        let own = rustix::process::geteuid().as_raw();
        let (other, group) = (own + 5, 77);
        let job = |access| Job::new("job", access).expect("a good name");
        let admitted = |access| {
            [(7, 1), (0, 1), (9, 1), (9, group)]
                .map(|(user, group)| job(access).admits_to(7, user, group))
        };
        let modes = [AccessMode::Owner, AccessMode::Group(group), AccessMode::Everyone];
        assert!(job(modes[0]).admits(own, 1) && !job(modes[0]).admits(other, 1));
        assert_eq!(admitted(modes[0]), [true, true, false, false]);
        assert_eq!(admitted(modes[1]), [true, true, false, true]);
        assert_eq!(admitted(modes[2]), [true; 4]);
        assert_eq!(modes.map(|access| job(access).refuses(other)), [true, false, false]);
        assert_eq!(modes.map(|access| job(access).refuses(own)), [false; 3]);
        assert!(is_own(own) && !is_own(other));
        let names = modes.map(|access| job(access).node_socket(7));
        let any = "bellwire.shm/any/job/7";
        assert_eq!(names, [&format!("bellwire.shm/{own}/job/7"), any, any]);
    }

    /// A function that listens is listed, with the name of its job.
    #[test]
    fn listening_functions_are_listed() {
        let name = format!("listed-{}", std::process::id());
        let job = Job::new(&name, AccessMode::Everyone).expect("a good name");
        let address = FunctionAddress { node: 3, function: 4 };
        let is_listed = || {
            let all = listening().expect("the kernel lists sockets");
            all.contains(&Listening { scope: "any".into(), job: name.clone(), address })
        };
        assert!(!is_listed());
        let socket = job.function_socket(address);
        let bound = crate::socket::reserve(&socket).expect("a free name");
        assert!(!is_listed(), "it does not listen yet");
        drop(bound);
        // A process that another test starts holds copies of all descriptors until it executes its
        // program, and so the name.
        let since = Instant::now();
        let listener = loop {
            match crate::socket::listen(&socket) {
                Err(Errno::ADDRINUSE) => {
                    assert!(since.elapsed() < LONG, "the name is not free");
                    std::thread::yield_now();
                }
                listener => break listener.expect("a free name"),
            }
        };
        assert!(is_listed());
        let _asking = crate::socket::connect(&socket).expect("it listens");
        let _accepted = crate::socket::accept(&listener).expect("it was asked");
        drop(listener);
        while is_listed() {
            assert!(since.elapsed() < LONG, "a connection is no listener");
            std::thread::yield_now();
        }
    }

    #[test]
    fn socket_table_lines_are_understood() {
        let line =
            "0000000000000000: 00000002 00000000 00010000 0005 01 12345 @bellwire.shm/0/job/7/2";
        let address = FunctionAddress { node: 7, function: 2 };
        assert_eq!(
            parse_line(line),
            Some(Listening { scope: "0".into(), job: "job".into(), address })
        );
        for other in [
            "",
            "x @bellwire.shm/0/job/7",
            "x @bellwire.shm/0/job/7/2/1",
            "x /run/foo",
            "x @else/0/job/7/2",
        ] {
            assert_eq!(parse_line(other), None, "{other:?}");
        }
    }
}
