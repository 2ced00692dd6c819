//! End points: what a connection request addresses within a node; and the addresses of VIA.

use bellwire::FunctionAddress;

/// Most bytes of a discriminator.
pub const DISCRIMINATOR_BYTES: usize = 64;

/// All processes of this host (`shm`).
pub const THIS_HOST: FunctionAddress = FunctionAddress { node: u32::MAX, function: u8::MAX };

/// A network address of VIA.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NetName {
    pub host: FunctionAddress,
    pub discriminator: Vec<u8>,
}

impl NetName {
    /// The order of the two sides of a connection. The function comes last, because a peer that
    /// names the host may mean another function.
    pub fn key(&self) -> (&[u8], u32, u8) {
        (&self.discriminator, self.host.node, self.host.function)
    }
}

/// The kind of connection request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// By a client, of a server.
    Client = 1,
    /// By one of two peers, of the other.
    Peer = 2,
}

/// What a request addresses within a node: a server's discriminator, or the discriminators of two
/// peers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndPoint(Vec<u8>);

impl EndPoint {
    pub fn of_server(discriminator: &[u8]) -> EndPoint {
        EndPoint([&[Role::Client as u8], discriminator].concat())
    }

    /// The end point of the peer `own` for the peer `other`.
    pub fn of_peer(own: &[u8], other: &[u8]) -> EndPoint {
        EndPoint([&[Role::Peer as u8, own.len() as u8], own, other].concat())
    }

    pub fn role(&self) -> Role {
        if self.0[0] == Role::Peer as u8 { Role::Peer } else { Role::Client }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// End points of servers and of peers differ. Two peers with the same letters, split elsewhere,
    /// differ too.
    #[test]
    fn end_points_are_told_apart() {
        let points = [
            EndPoint::of_server(b"ab"),
            EndPoint::of_peer(b"ab", b""),
            EndPoint::of_peer(b"a", b"b"),
            EndPoint::of_peer(b"", b"ab"),
        ];
        for (place, point) in points.iter().enumerate() {
            assert_eq!(points.iter().position(|other| other == point), Some(place));
            assert_eq!(point.role(), if place == 0 { Role::Client } else { Role::Peer });
        }
    }
}
