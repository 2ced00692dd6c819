//! The agent: whom it serves, its limits, and its loop.

use super::channel::{self, Peer, Received};
use super::egress::{self, Egress};
use super::message::{Answer, Heard, REQUEST_BYTES, Refused, Request, VERSION, Want};
use super::owners::{self, Owner};
use super::{PATH, SOCKETS_OF_USER};
use crate::interface::Interface;
use crate::link_header::EVERY_FUNCTION;
use crate::packet;
use bellwire_ring::canary::planted;
use bellwire_ring::steps::step;
use rustix::event::{PollFd, PollFlags, Timespec};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a connection may say nothing.
const INTRODUCTION_TIME: Duration = Duration::from_secs(1);
/// Silent connections at once, in all and of one user. One more closes the oldest of that user, or
/// of the user who has the most.
const PENDING: usize = 64;
const PENDING_OF_USER: usize = 8;
/// Connections that are accepted before those that wait have their turn.
const ACCEPTS: usize = 32;
/// Connections that wait in the kernel.
const BACKLOG: i32 = 128;
/// Pause when no descriptor is left.
const PAUSE: Duration = Duration::from_millis(10);

/// How to open an [`Agent`].
#[derive(Debug)]
pub struct AgentOptions {
    /// The names of the interfaces. They may come later, and go.
    pub interfaces: Vec<String>,
    /// The group whose members may ask: its number and name. Root may ask, too.
    pub group: (u32, String),
    /// Where to listen; `None`: [`PATH`].
    pub path: Option<PathBuf>,
    /// A socket that listens already.
    pub listener: Option<OwnedFd>,
    /// Whether programs get sockets also while nothing restricts what they send.
    pub allow_unrestricted: bool,
}

/// A process that hands out sockets of its interfaces.
pub struct Agent {
    interfaces: Vec<String>,
    group: (u32, String),
    listener: OwnedFd,
    pending: Vec<Pending>,
    egress: Egress,
    /// Why what programs send is not restricted.
    unrestricted: Option<String>,
    allow_unrestricted: bool,
}

/// A connection that has said nothing yet.
struct Pending {
    connection: OwnedFd,
    peer: Peer,
    since: Instant,
}

impl Agent {
    /// Listens, and restricts what programs can send.
    ///
    /// # Errors
    /// - `PermissionDenied` without CAP_NET_RAW and CAP_NET_ADMIN, or if the path cannot be made.
    /// - `AddrInUse` if another agent listens there.
    /// - What the kernel says otherwise. That sending cannot be restricted is no error: until it
    ///   can, programs are refused.
    pub fn open(options: AgentOptions) -> io::Result<Agent> {
        let said = |what: &str| {
            let what = what.to_owned();
            move |error: io::Error| io::Error::new(error.kind(), format!("{what}: {error}"))
        };
        crate::socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0)
            .map_err(said("a packet socket cannot be made (CAP_NET_RAW)"))?;
        owners::all().map_err(said(
            "the kernel does not list packet sockets (CAP_NET_ADMIN, packet_diag)",
        ))?;
        let egress = Egress::new().map_err(said("notices of interfaces"))?;
        let listener = match options.listener {
            Some(listener) => listener,
            None => {
                let path = options.path.unwrap_or_else(|| PATH.into());
                listen(&path, options.group.0)
                    .map_err(said(&format!("cannot listen at {}", path.display())))?
            }
        };
        let mut agent = Agent {
            interfaces: options.interfaces,
            group: options.group,
            listener,
            pending: Vec::new(),
            egress,
            unrestricted: None,
            allow_unrestricted: options.allow_unrestricted,
        };
        agent.restrict();
        Ok(agent)
    }

    /// Why what programs send is not restricted; `None` if it is.
    pub fn unrestricted(&self) -> Option<&str> {
        self.unrestricted.as_deref()
    }

    /// Answers programs, without end.
    ///
    /// # Errors
    /// What the kernel says if waiting fails.
    pub fn serve(&mut self) -> io::Result<()> {
        loop {
            self.turn()?;
        }
    }

    /// Waits until something happens, and deals with it.
    fn turn(&mut self) -> io::Result<()> {
        let nap = self.pending.iter().map(|pending| pending.since + INTRODUCTION_TIME).min();
        let nap = nap.map(|until| until.saturating_duration_since(Instant::now()));
        let timeout = nap.map(|nap| Timespec {
            tv_sec: nap.as_secs() as i64,
            tv_nsec: i64::from(nap.subsec_nanos()),
        });
        let fixed = [self.listener.as_fd(), self.egress.notices.as_fd()];
        let all = fixed.into_iter().chain(self.pending.iter().map(|it| it.connection.as_fd()));
        let mut polled: Vec<PollFd<'_>> =
            all.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
        match rustix::event::poll(&mut polled, timeout.as_ref()) {
            Err(rustix::io::Errno::INTR) => return Ok(()),
            other => other?,
        };
        let ready: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
        if ready[1] {
            self.restrict();
        }
        let waiting = std::mem::take(&mut self.pending);
        for (pending, ready) in waiting.into_iter().zip(&ready[2..]) {
            if *ready {
                self.hear(pending);
            } else if pending.since.elapsed() < INTRODUCTION_TIME {
                self.pending.push(pending);
            }
        }
        if ready[0] {
            self.accept();
        }
        Ok(())
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS {
            let connection = match channel::accept(&self.listener) {
                Ok(connection) => connection,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => {
                    tracing::warn!("no connection can be accepted: {error}");
                    self.pending.clear();
                    return std::thread::sleep(PAUSE);
                }
            };
            if let Ok(peer) = Peer::of(&connection) {
                self.hear(Pending { connection, peer, since: Instant::now() });
            }
        }
    }

    /// Reads a connection's request, answers it, and closes the connection. Keeps one that has said
    /// nothing.
    fn hear(&mut self, pending: Pending) {
        let heard = match channel::receive::<REQUEST_BYTES>(&pending.connection) {
            Received::Nothing => return self.keep(pending),
            Received::Closed => return,
            Received::Record(bytes, fds) if fds.is_empty() => Heard::parse(&bytes),
            // A request has no descriptors.
            Received::Record(..) => Heard::Garbage,
        };
        step("agent-heard");
        let (answer, socket) = match heard {
            Heard::Garbage => return,
            Heard::OtherVersion => {
                (Answer::Refused(Refused::Version, VERSION, String::new()), None)
            }
            Heard::Request(request) => match self.decide(&pending.peer, &request) {
                Ok(granted) => granted,
                Err(refused) => (refused, None),
            },
        };
        step("agent-decided");
        // A new connection has room for one answer. A program that has gone loses it.
        let _ = channel::send(
            &pending.connection,
            &answer.to_bytes(),
            socket.as_ref().map(AsFd::as_fd),
        );
        step("agent-answered");
    }

    /// Keeps a silent connection, within the limits.
    fn keep(&mut self, pending: Pending) {
        let of = |user: u32| self.pending.iter().filter(|it| it.peer.user == user).count();
        let user = if of(pending.peer.user) >= PENDING_OF_USER {
            Some(pending.peer.user)
        } else if self.pending.len() >= PENDING {
            self.pending.iter().map(|it| it.peer.user).max_by_key(|&user| of(user))
        } else {
            None
        };
        // They stand in the order in which they came.
        if let Some(user) = user
            && let Some(oldest) = self.pending.iter().position(|it| it.peer.user == user)
        {
            self.pending.remove(oldest);
        }
        self.pending.push(pending);
    }

    fn decide(
        &mut self,
        peer: &Peer,
        request: &Request,
    ) -> Result<(Answer, Option<OwnedFd>), Answer> {
        let refused = |why, number, text: &str| Answer::Refused(why, number, text.to_owned());
        let own = rustix::process::geteuid().as_raw();
        let admitted = [0, own].contains(&peer.user) || peer.groups.contains(&self.group.0);
        if !admitted && !planted(EVERYBODY_ADMITTED) {
            return Err(refused(Refused::Group, self.group.0, &self.group.1));
        }
        let names = self.interfaces.join(" ");
        if request.want == Want::Interfaces {
            self.ensure_restricted()?;
            return Ok((Answer::Interfaces(names), None));
        }
        if !self.interfaces.contains(&request.interface) {
            return Err(refused(Refused::Interface, 0, &names));
        }
        let system = |what: &'static str| {
            move |error: io::Error| {
                let code = error.raw_os_error().unwrap_or(0) as u32;
                Answer::Refused(Refused::System, code, format!("{what}: {error}"))
            }
        };
        let interface = Interface::find(&request.interface).map_err(system("the interface"))?;
        if interface.index != request.index {
            return Err(refused(Refused::Namespace, 0, ""));
        }
        let owners = owners::all().map_err(system("listing packet sockets"))?;
        self.ensure_restricted()?;
        let theirs = owners.iter().filter(|owner| owner.user == peer.user).count();
        if peer.user != 0 && theirs >= SOCKETS_OF_USER && !planted(NO_LIMIT) {
            return Err(refused(Refused::Limit, SOCKETS_OF_USER as u32, ""));
        }
        // Frames for all functions are for everybody.
        let function = request.function;
        let has = |owner: &Owner| (owner.index, owner.function) == (interface.index, function);
        if function != EVERY_FUNCTION && owners.iter().any(has) && !planted(GIVEN_TWICE) {
            return Err(refused(Refused::InUse, 0, ""));
        }
        let mark = egress::mark(interface.index);
        let socket = packet::socket_for(&interface, function, peer.user, mark)
            .map_err(system("a packet socket"))?;
        tracing::info!(user = peer.user, interface = interface.name, function, "a socket is given");
        Ok((Answer::Granted, Some(socket)))
    }

    /// Restricts what programs send. A program that asks while that fails is refused, unless the
    /// agent was told otherwise.
    fn ensure_restricted(&mut self) -> Result<(), Answer> {
        self.restrict();
        match &self.unrestricted {
            Some(why) if !self.allow_unrestricted && !planted(GIVEN_UNRESTRICTED) => {
                Err(Answer::Refused(Refused::Unrestricted, 0, why.clone()))
            }
            _ => Ok(()),
        }
    }

    /// Restricts what programs send.
    fn restrict(&mut self) {
        let why = self.egress.apply().err().map(|error| error.to_string());
        if let Some(why) = &why
            && self.unrestricted.as_ref() != Some(why)
        {
            let follows = match self.allow_unrestricted {
                true => "programs can send any frame",
                false => "no program gets a socket",
            };
            tracing::warn!("what programs send is not restricted, so {follows}: {why}");
        }
        self.unrestricted = why;
    }
}

// Planted faults, for the canaries.
const EVERYBODY_ADMITTED: &str = "agent-everybody-admitted";
const NO_LIMIT: &str = "agent-no-limit";
const GIVEN_TWICE: &str = "agent-given-twice";
const GIVEN_UNRESTRICTED: &str = "agent-given-unrestricted";

/// Listens at `path`, which the group may connect to.
fn listen(path: &Path, group: u32) -> io::Result<OwnedFd> {
    if let Some(folder) = path.parent().filter(|folder| !folder.exists()) {
        std::fs::create_dir_all(folder)?;
    }
    let bound = match channel::bind(path) {
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            match channel::connect(path) {
                // The file of an agent that has ended.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    std::fs::remove_file(path)?;
                    channel::bind(path)
                }
                _ => Err(io::Error::new(error.kind(), "another agent listens there")),
            }
        }
        other => other,
    }?;
    // Nobody can connect before it listens.
    chown(path, None, Some(group))?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))?;
    rustix::net::listen(&bound, BACKLOG)?;
    Ok(bound)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    /// The socket of another program is no agent's: it stays.
    #[test]
    fn a_foreign_socket_stays() {
        let path = std::env::temp_dir().join(format!("bellwire-foreign-{}", std::process::id()));
        let other = UnixListener::bind(&path).expect("a socket");
        let refused = listen(&path, 0).expect_err("it is taken");
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        assert!(path.exists());
        drop(other);
        std::fs::remove_file(&path).expect("it is still there");
    }
}
