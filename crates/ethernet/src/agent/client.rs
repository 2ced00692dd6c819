//! How a program asks the agent.

use super::channel::{self, Received};
use super::message::{ANSWER_BYTES, Answer, Refused, Request, VERSION, Want};
use crate::interface::Interface;
use crate::socket;
use bellwire_device::Error;
use bellwire_ring::steps::step;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long the agent may take, restarts included.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long an earlier owner's socket may stay after its name was freed.
const CLEARING_UP: Duration = Duration::from_secs(5);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(5);

/// The agent at a path, as a program sees it.
#[derive(Clone, Debug)]
pub(crate) struct AgentClient {
    pub path: PathBuf,
}

/// Why the agent gives nothing, and what helps.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// There is none.
    Missing(io::Error),
    InUse,
    Other {
        why: String,
        hint: String,
    },
}

impl Trouble {
    pub fn into_error(self, device: &str, function: u8) -> Error {
        let (why, hint) = match self {
            Trouble::InUse => {
                return Error::BadFunction {
                    function,
                    why: "it is open already, here or elsewhere",
                };
            }
            Trouble::Missing(error) => (
                format!("no agent answers ({error})"),
                "as root: bellwire agent --iface IFACE --allow-group GROUP (docs/agent.md)".into(),
            ),
            Trouble::Other { why, hint } => (why, hint),
        };
        Error::DeviceUnavailable { device: device.to_owned(), why, hint }
    }
}

/// The interfaces that the agent at `path` serves.
///
/// # Errors
/// Why it does not say, and what helps.
pub fn interfaces_of(path: &Path) -> Result<Vec<String>, Error> {
    let client = AgentClient { path: path.to_owned() };
    client.interfaces().map_err(|trouble| trouble.into_error("eth", 0))
}

impl AgentClient {
    /// The names of the interfaces that it serves.
    pub fn interfaces(&self) -> Result<Vec<String>, Trouble> {
        let request =
            Request { want: Want::Interfaces, function: 0, index: 0, interface: String::new() };
        match self.ask(&request)? {
            (Answer::Interfaces(names), ..) => {
                Ok(names.split_whitespace().map(str::to_owned).collect())
            }
            _ => Err(self.nonsense()),
        }
    }

    /// Whether it serves all of these interfaces.
    pub fn serves<'n>(&self, names: impl Iterator<Item = &'n str>) -> Result<(), Trouble> {
        let served = self.interfaces()?;
        for name in names {
            if !served.iter().any(|it| it == name) {
                return Err(self.other_interface(name, &served.join(" ")));
            }
        }
        Ok(())
    }

    /// A packet socket of `function`, bound and with its filter. The function's name is ours.
    pub fn packet_socket(&self, interface: &Interface, function: u8) -> Result<OwnedFd, Trouble> {
        let since = Instant::now();
        loop {
            match self.ask_for_packet(interface, function) {
                // As its name is free, the socket's owner is ending.
                Err(Trouble::InUse) if since.elapsed() < CLEARING_UP => std::thread::sleep(PAUSE),
                other => return other,
            }
        }
    }

    /// Asks once for the socket of a function.
    pub fn ask_for_packet(&self, interface: &Interface, function: u8) -> Result<OwnedFd, Trouble> {
        let (index, name) = (interface.index, interface.name.clone());
        let request = Request { want: Want::Packet, function, index, interface: name };
        let (Answer::Granted, Some(given), asked) = self.ask(&request)? else {
            return Err(self.nonsense());
        };
        step("agent-told");
        let kind = |name| socket::query(given.as_fd(), libc::SOL_SOCKET, name, 0);
        if !matches!(
            (kind(libc::SO_DOMAIN), kind(libc::SO_TYPE)),
            (Ok(libc::AF_PACKET), Ok(libc::SOCK_RAW))
        ) {
            return Err(self.nonsense());
        }
        // A kernel before 5.14 does not tell, and the numbers of the interfaces are the same.
        let namespace =
            |fd: &OwnedFd| socket::query(fd.as_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE, 0u64).ok();
        if namespace(&given) != namespace(&asked) {
            return Err(self.other_namespace());
        }
        Ok(given)
    }

    /// The agent's answer, its descriptor, and the socket that asked.
    fn ask(&self, request: &Request) -> Result<(Answer, Option<OwnedFd>, OwnedFd), Trouble> {
        let until = Instant::now() + PATIENCE;
        let mut restarts = 0;
        loop {
            let asking = match channel::connect(&self.path) {
                // Too many wait there.
                Err(error)
                    if error.kind() == io::ErrorKind::WouldBlock && Instant::now() < until =>
                {
                    std::thread::sleep(PAUSE);
                    continue;
                }
                // An agent is being restarted.
                Err(error) if restarts > 0 && is_absent(&error) && Instant::now() < until => {
                    std::thread::sleep(PAUSE);
                    continue;
                }
                Err(error) => return Err(self.unconnected(error)),
                Ok(asking) => asking,
            };
            step("agent-ask");
            let heard = channel::send(&asking, &request.to_bytes(), None)
                .map_or(Received::Closed, |()| answer_within(&asking, until));
            let (bytes, fds) = match heard {
                Received::Record(bytes, fds) => (bytes, fds),
                Received::Nothing => {
                    return Err(self.trouble(
                        "does not answer".into(),
                        format!("see whether its process is stopped, or {}", self.restart()),
                    ));
                }
                // It has ended, or has many silent connections of this user.
                Received::Closed if restarts < 50 && Instant::now() < until => {
                    restarts += 1;
                    std::thread::sleep(PAUSE);
                    continue;
                }
                Received::Closed => {
                    return Err(self.trouble("ends before it answers".into(), self.restart()));
                }
            };
            return match Answer::parse(&bytes) {
                Some(Answer::Refused(why, number, text)) => {
                    Err(self.refused(request, why, number, &text))
                }
                Some(answer) => Ok((answer, fds.into_iter().next(), asking)),
                None => Err(self.nonsense()),
            };
        }
    }

    fn refused(&self, request: &Request, why: Refused, number: u32, text: &str) -> Trouble {
        match why {
            Refused::InUse => Trouble::InUse,
            Refused::Interface => self.other_interface(&request.interface, text),
            Refused::Namespace => self.other_namespace(),
            Refused::Group => self.not_in_group(text),
            Refused::Limit => self.trouble(
                format!("gives a user {number} sockets, and this user has them"),
                "close functions of other programs; `ss -0p` lists the sockets".into(),
            ),
            Refused::Version => self.trouble(
                format!("speaks version {number} of its messages, and this program {VERSION}"),
                "install the same Bellwire for both, and restart the agent".into(),
            ),
            Refused::Unrestricted => self.trouble(
                format!("gives nothing while it cannot restrict what programs send: {text}"),
                "see that nft works there: apt-get install nftables (docs/agent.md)".into(),
            ),
            Refused::System => {
                self.trouble(format!("failed: {text}"), "`journalctl -u bellwire-agent`".into())
            }
        }
    }

    fn unconnected(&self, error: io::Error) -> Trouble {
        match error.kind() {
            io::ErrorKind::PermissionDenied => {
                let group = std::fs::metadata(&self.path).map(|file| group_name(file.gid()));
                self.not_in_group(&group.unwrap_or_else(|_| "its group".into()))
            }
            _ if is_absent(&error) => Trouble::Missing(error),
            _ => self.trouble(format!("cannot be asked: {error}"), self.restart()),
        }
    }

    fn not_in_group(&self, group: &str) -> Trouble {
        self.trouble(
            format!("serves members of the group {group}, and this process is not one"),
            format!("sudo usermod -aG {group} $USER, and log in again"),
        )
    }

    fn other_interface(&self, name: &str, served: &str) -> Trouble {
        self.trouble(
            format!("serves {served}, and not {name}"),
            format!("start it with --iface {name} too, or take eth:{served}"),
        )
    }

    fn other_namespace(&self) -> Trouble {
        self.trouble(
            "is in another network namespace".into(),
            "an agent in this namespace, with --socket PATH and agent=PATH".into(),
        )
    }

    fn nonsense(&self) -> Trouble {
        self.trouble("gives no proper answer".into(), self.restart())
    }

    fn restart(&self) -> String {
        "sudo systemctl restart bellwire-agent".into()
    }

    fn trouble(&self, what: String, hint: String) -> Trouble {
        Trouble::Other { why: format!("the agent at {} {what}", self.path.display()), hint }
    }
}

/// Whether nobody listens.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// Number of the option that tells a socket's network namespace (asm-generic/socket.h).
const SO_NETNS_COOKIE: i32 = 71;

/// What comes until then.
fn answer_within(asking: &OwnedFd, until: Instant) -> Received<ANSWER_BYTES> {
    loop {
        let heard = channel::receive(asking);
        let left = until.saturating_duration_since(Instant::now());
        if !matches!(heard, Received::Nothing) || left.is_zero() {
            return heard;
        }
        let mut polled = [PollFd::from_borrowed_fd(asking.as_fd(), PollFlags::IN)];
        let left =
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        // An interrupted wait begins anew.
        let _ = rustix::event::poll(&mut polled, Some(&left));
    }
}

/// The name of a group, or its number.
fn group_name(number: u32) -> String {
    let table = std::fs::read_to_string("/etc/group").unwrap_or_default();
    let name = table.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(number)).then(|| name.to_owned())
    });
    name.unwrap_or_else(|| number.to_string())
}
