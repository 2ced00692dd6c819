//! The device: one node of a job.

use crate::holder::Holders;
use crate::layout::POOL_BYTES;
use crate::local::Node;
use crate::name::{self, Job};
use crate::transport::ShmTransport;
use crate::{attach, barrier, socket};
use bellwire_device::{AccessMode, DeviceKind, Error, NodeInfo, Settings, TransportVisitor};
use std::sync::Arc;

/// Maximum number of nodes of one job.
pub const NODES: u32 = 65_536;

/// One opening of `shm:JOB`: a node, whose number is ours while this lives.
#[derive(Clone)]
pub struct ShmDevice {
    node: Arc<Node>,
    /// Nodes that were skipped because other users hold them.
    squatted: Option<Squatted>,
}

/// Nodes that are held by processes that the job does not admit.
#[derive(Clone)]
struct Squatted {
    /// The lowest one, and its user.
    first: (u32, u32),
    nodes: u32,
}

impl ShmDevice {
    /// Joins a job as `node`, or as the lowest free one. Nodes of users whom the job does not admit
    /// are skipped with a warning, which [`NodeInfo::describe`] repeats.
    ///
    /// # Errors
    /// [`Error::NameHeld`] if another user holds `node`, [`Error::DeviceUnavailable`] if another
    /// process of this user does.
    pub fn open(job: &str, access: AccessMode, node: Option<u32>) -> Result<ShmDevice, Error> {
        let name = format!("shm:{job}");
        let job = Job::new(job, access)
            .map_err(|why| Error::BadDeviceName { name: name.clone(), why })?;
        let candidates = match node {
            Some(node) if node < NODES => node..node + 1,
            Some(node) => {
                return Err(Error::OutOfRange {
                    parameter: "node",
                    value: node.into(),
                    range: "below 65536",
                });
            }
            None => 0..NODES,
        };
        // Read once, when the first name turns out to be taken.
        let mut holders = None;
        let mut squatted: Option<Squatted> = None;
        let mut user = None;
        for node in candidates {
            let socket = job.node_socket(node);
            match socket::reserve(&socket) {
                Ok(socket) => {
                    if let Some(squatted) = &squatted {
                        tracing::warn!("joined {name} as node {node}, because {squatted}");
                    }
                    let node = Node { job, number: node, _socket: Some(socket) };
                    return Ok(ShmDevice { node: Arc::new(node), squatted });
                }
                Err(rustix::io::Errno::ADDRINUSE) => {
                    user = holders.get_or_insert_with(Holders::now).user_of_taken(&socket);
                    if let Some(user) = user.filter(|&user| job.refuses(user)) {
                        let squatted =
                            squatted.get_or_insert(Squatted { first: (node, user), nodes: 0 });
                        squatted.nodes += 1;
                    }
                }
                Err(error) => {
                    return Err(Error::DeviceUnavailable {
                        device: name,
                        why: format!("a control socket cannot be made: {error}"),
                        hint: match error {
                            rustix::io::Errno::MFILE => "ulimit -n 4096",
                            _ => "bellwire doctor",
                        }
                        .into(),
                    });
                }
            }
        }
        if let (Some(node), Some(user)) = (node, user.filter(|&user| !name::is_own(user))) {
            return Err(Error::NameHeld { what: format!("node {node}"), job: job.name, user });
        }
        Err(Error::DeviceUnavailable {
            device: name,
            why: match node {
                Some(node) => format!("node {node} is taken by another process"),
                None => format!("all {NODES} nodes are taken"),
            },
            hint: "bellwire list".into(),
        })
    }

    /// Joins a job as `node`, which may be any number, together with all other processes that do
    /// the same. Each function of it belongs to one process. For devices that get node numbers from
    /// elsewhere.
    pub fn share(job: &str, access: AccessMode, node: u32) -> Result<ShmDevice, Error> {
        let job = Job::new(job, access)
            .map_err(|why| Error::BadDeviceName { name: format!("shm:{job}"), why })?;
        let node = Node { job, number: node, _socket: None };
        Ok(ShmDevice { node: Arc::new(node), squatted: None })
    }

    /// Opens a function. `weight`: its share of a receiver that several functions send to.
    pub fn open_function(&self, function: u8, weight: u8) -> Result<ShmTransport, Error> {
        ShmTransport::open(self.node.clone(), function, weight)
    }
}

impl std::fmt::Display for Squatted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Squatted { first: (node, user), nodes } = self;
        write!(f, "user {user}, who is not admitted, holds the name of node {node}")?;
        match nodes {
            1 => Ok(()),
            _ => write!(f, "; users who are not admitted hold {} more", nodes - 1),
        }
    }
}

impl NodeInfo for ShmDevice {
    fn node(&self) -> u32 {
        self.node.number
    }

    fn describe(&self) -> String {
        let fences = if barrier::available() {
            "membarrier (senders pay no fence)"
        } else {
            "full fences (membarrier is not available)"
        };
        let attach = if attach::works_here() {
            "cross-memory attach for memory that programs bring"
        } else {
            "staged copies for memory that programs bring (cross-memory attach is not allowed)"
        };
        let squatted = match &self.squatted {
            Some(squatted) => format!(" ({squatted})"),
            None => String::new(),
        };
        format!(
            "shared memory, node {} of job {}{squatted}: pool of {} KiB per function, {fences}, {attach}",
            self.node.number,
            self.node.job.name,
            POOL_BYTES / 1024
        )
    }
}

impl DeviceKind for ShmDevice {
    const NAME: &'static str = "shm";
    const FORMS: &'static [&'static str] = &["shm:JOB"];
    type Options = (Option<u32>, AccessMode);

    fn options(_: &str, settings: &mut Settings) -> Result<Self::Options, Error> {
        Ok((settings.node()?, settings.access_mode()?))
    }

    fn open(job: &str, (node, access): Self::Options) -> Result<Self, Error> {
        ShmDevice::open(job, access, node)
    }

    fn open_function<V: TransportVisitor>(
        &self,
        function: u8,
        weight: u8,
        visitor: V,
    ) -> Result<V::Output, Error> {
        Ok(visitor.visit(self.open_function(function, weight)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first name that another user holds is told, and more of them are counted.
    #[test]
    fn squatters_are_told_and_counted() {
        let said = |nodes| Squatted { first: (3, 7), nodes }.to_string();
        let one = "user 7, who is not admitted, holds the name of node 3";
        assert_eq!(said(1), one);
        assert_eq!(said(3), format!("{one}; users who are not admitted hold 2 more"));
    }

    /// A name's settings say which node is asked for, and who may come.
    #[test]
    fn settings_are_read() {
        let mut settings = Settings::new("shm:job");
        settings.set("node", "3");
        settings.set("mode", "0666");
        let options = ShmDevice::options("job", &mut settings).expect("good ones");
        assert_eq!(options, (Some(3), AccessMode::Everyone));
    }

    /// A process that may open no more files is told how to change that.
    #[test]
    fn a_limit_of_files_is_told() {
        let mut alone = crate::testing::begin_alone("device::tests::opens_no_file", "device");
        assert!(alone.wait().expect("it was started here").success());
    }

    /// Not a test of its own: the process of the one before.
    #[test]
    #[ignore = "another test starts it"]
    fn opens_no_file() {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        if crate::testing::role().is_none() {
            return;
        }
        let limit = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(0), ..limit }).expect("a lower one");
        let refused = ShmDevice::open("no-files", AccessMode::Owner, None).err();
        setrlimit(Resource::Nofile, limit).expect("the former one");
        let Some(Error::DeviceUnavailable { hint, .. }) = refused else { panic!("{refused:?}") };
        assert_eq!(hint, "ulimit -n 4096");
    }
}
