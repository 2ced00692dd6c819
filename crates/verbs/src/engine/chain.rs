//! Chain descriptors: lists of local buffers and of remote parts with the same total (C-28, C-29).

use super::Core;
use super::send::registered;
use crate::descriptor::{LocalChain, RemoteChain};
use bellwire_device::{Error, FunctionAddress, RemoteKey, Result};
use bellwire_ring::memory::View;
use bellwire_wire::recut::{Piece, recut, total_bytes};

/// Copies of at least this size bypass the cache. Both ways are equally fast at 8 MiB, measured on
/// a machine with 32 MiB of last-level cache.
const STREAMING_BYTES: usize = 8 << 20;

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
        let maximum = self.limits.message_bytes;
        let too_long = |length| Error::TooLong { length, maximum, what: "a put or get" };
        let here = total_bytes(local_lengths(local)).map_err(|_| too_long(usize::MAX))?;
        let there = total_bytes(remote_lengths(remote)).map_err(|_| too_long(usize::MAX))?;
        if here != there {
            let (sources, destinations) = if from_local { (here, there) } else { (there, here) };
            return Err(Error::UnequalSums { sources, destinations });
        }
        if here > maximum as u64 {
            return Err(too_long(here as usize));
        }
        Ok((here, owner))
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

/// A part of a copy of `whole` bytes. Large copies bypass the cache.
pub(super) fn around_cache(part: View<'_>, whole: u64) -> View<'_> {
    if whole >= STREAMING_BYTES as u64 { part.streaming() } else { part }
}
