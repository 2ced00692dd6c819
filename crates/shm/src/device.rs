//! The device: one node of a job.

use crate::link::GEOMETRY;
use crate::name::{Access, Job};
use crate::transport::ShmTransport;
use crate::{attach, barrier, socket};
use bellwire_device::{Error, Station};
use bellwire_ring::segment::LINE_BYTES;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Most nodes of one job.
pub const NODES: u32 = 65_536;

/// One opening of `shm:JOB`: a node, whose number is ours while this lives.
#[derive(Clone)]
pub struct ShmDevice(Arc<DeviceInner>);

pub(crate) struct DeviceInner {
    pub job: Job,
    pub node: u32,
    /// Its name is what reserves the node's number; a shared number is nobody's.
    _socket: Option<OwnedFd>,
}

impl ShmDevice {
    /// Joins a job as `node`, or as the lowest free one.
    pub fn open(job: &str, access: Access, node: Option<u32>) -> Result<ShmDevice, Error> {
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
        for node in candidates {
            match socket::reserve(&job.node_socket(node)) {
                Ok(socket) => {
                    let inner = DeviceInner { job, node, _socket: Some(socket) };
                    return Ok(ShmDevice(Arc::new(inner)));
                }
                Err(rustix::io::Errno::ADDRINUSE) => {}
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
        Err(Error::DeviceUnavailable {
            device: name,
            why: match node {
                Some(node) => format!("node {node} is taken by another process"),
                None => format!("all {NODES} nodes are taken"),
            },
            hint: "bellwire list".into(),
        })
    }

    /// Joins a job as `node`, any number, together with all other processes that do the same: each function of it is one process's.
    /// For nodes whose numbers something else gives out.
    pub fn share(job: &str, access: Access, node: u32) -> Result<ShmDevice, Error> {
        let job = Job::new(job, access)
            .map_err(|why| Error::BadDeviceName { name: format!("shm:{job}"), why })?;
        Ok(ShmDevice(Arc::new(DeviceInner { job, node, _socket: None })))
    }

    /// Opens a function. `weight`: its share of a receiver that several functions send to.
    pub fn open_function(&self, function: u8, weight: u8) -> Result<ShmTransport, Error> {
        ShmTransport::open(self.0.clone(), function, weight)
    }
}

impl Station for ShmDevice {
    fn node(&self) -> u32 {
        self.0.node
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
        format!(
            "shared memory, node {} of job {}: pool of {} KiB per function, {fences}, {attach}",
            self.0.node,
            self.0.job.name,
            GEOMETRY.pool_chunks * GEOMETRY.chunk_lines * LINE_BYTES / 1024
        )
    }
}
