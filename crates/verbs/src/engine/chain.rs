//! Chain descriptors: lists of local buffers and of remote parts with the same total (C-28, C-29).

use super::send::{no_route, registered};
use super::*;
use crate::descriptor::{LocalChain, RemoteChain};
use bellwire_device::{Address, QueuePair, RemoteKey};
use bellwire_wire::recut::{Piece, recut, total_bytes};

/// The pieces from byte `done` on, each inside one local buffer and one remote part.
pub(super) fn pieces<'a>(
    sources: impl Iterator<Item = u64> + Clone + 'a,
    destinations: impl Iterator<Item = u64> + Clone + 'a,
    mut done: u64,
) -> impl Iterator<Item = Piece> + 'a {
    // The totals were compared at the post, so no error is possible here.
    recut(sources, destinations).into_iter().flatten().filter_map(move |mut piece| {
        let skipped = done.min(piece.length);
        done -= skipped;
        piece.source_offset += skipped;
        piece.destination_offset += skipped;
        piece.length -= skipped;
        (piece.length > 0).then_some(piece)
    })
}

pub(super) fn local_lengths(chain: &LocalChain) -> impl Iterator<Item = u64> + Clone + '_ {
    chain.0.items().iter().map(|buffer| buffer.len() as u64)
}

pub(super) fn remote_lengths(chain: &RemoteChain) -> impl Iterator<Item = u64> + Clone + '_ {
    chain.0.items().iter().map(|slice| slice.length)
}

impl Core {
    /// Checks a chain before any byte moves: entries, owner, bounds as far as this side knows them,
    /// and totals. Returns the total in bytes and the owner of the remote memory.
    pub(super) fn check_chain(
        &self,
        local: &LocalChain,
        remote: &RemoteChain,
        from_local: bool,
    ) -> Result<(u64, FunctionAddress)> {
        let (buffers, slices) = (local.0.items(), remote.0.items());
        for entries in [buffers.len(), slices.len()] {
            if entries == 0 || entries > self.limits.chain_entries {
                let maximum = self.limits.chain_entries;
                return Err(Error::BadChain(format!(
                    "has 1 to {maximum} entries on each side, and this one {entries}"
                )));
            }
        }
        let owner = slices[0].key.owner();
        for slice in slices {
            if slice.key.owner() != owner {
                let why = "goes to one function: post one descriptor per function";
                return Err(Error::BadChain(why.to_owned()));
            }
            check_bounds(slice.key, slice.offset, slice.length)?;
        }
        if !buffers.iter().all(|buffer| registered(&self.regions, buffer)) {
            return Err(Error::NoSuchRegion);
        }
        let too_long = || Error::TooLong {
            length: usize::MAX,
            maximum: self.limits.message_bytes,
            what: "a put or get",
        };
        let here = total_bytes(local_lengths(local)).map_err(|_| too_long())?;
        let there = total_bytes(remote_lengths(remote)).map_err(|_| too_long())?;
        if here != there {
            let (sources, destinations) = if from_local { (here, there) } else { (there, here) };
            return Err(Error::UnequalSums { sources, destinations });
        }
        if here > self.limits.message_bytes as u64 {
            return Err(Error::TooLong {
                length: here as usize,
                maximum: self.limits.message_bytes,
                what: "a put or get",
            });
        }
        Ok((here, owner))
    }

    /// The link to the owner of remote memory, and the peer that the completion names.
    #[inline]
    pub(super) fn route_to_owner<T: Transport>(
        &mut self,
        transport: &mut T,
        queue_pair: QueuePair,
        owner: FunctionAddress,
    ) -> Result<(LinkId, Address)> {
        let entry = self
            .queue_pairs
            .find(queue_pair.slot, queue_pair.generation)
            .ok_or_else(|| Error::NoSuchQueuePair)?;
        match entry.routing.route() {
            Route::Connected { link, peer } if peer.function_address() == owner => Ok((link, peer)),
            Route::Connected { .. } => Err(Error::BadDestination(
                "this queue pair is connected, and the key belongs to another function than its peer",
            )),
            Route::Unconnected => {
                let link = self.link_to(transport, owner)?;
                Ok((link, Address::new(owner.node, owner.function, 0)))
            }
            route => Err(no_route(route, None)),
        }
    }
}

/// Whether a part lies inside its key's region, as the owner stated its length.
#[inline]
pub(super) fn check_bounds(key: RemoteKey, offset: u64, length: u64) -> Result<()> {
    let range = "at most the length of the key's region";
    match offset.checked_add(length) {
        Some(end) if end <= key.length => Ok(()),
        end => {
            let value = end.unwrap_or(u64::MAX);
            Err(Error::OutOfRange { parameter: "offset + length of a remote part", value, range })
        }
    }
}
