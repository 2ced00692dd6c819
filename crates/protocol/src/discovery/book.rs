//! What a device knows of the places of nodes.

/// Which station the number of a node belongs to, as seen from one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// The station at this place: the number is made from its address.
    This,
    /// Another station.
    Other,
    /// The station that has chosen the number.
    Anybody,
}

/// What a device knows of the places of nodes. The device defines how numbers follow from
/// addresses.
pub trait Book<P> {
    /// Which station the number `node` belongs to, as far as addresses tell.
    fn owner(&self, node: u32, place: P) -> Owner;

    /// Where `node` was last heard, or found for the user, if that is a station other than the one
    /// at `place`.
    fn other_place(&self, node: u32, place: P) -> Option<P>;

    /// `node` has proved that it is at `place`.
    fn heard(&mut self, node: u32, place: P);

    /// A Here for `node` came from `place`. Returns whether that is a further place: by an
    /// interface that did not reach the node before. A known place is not changed.
    fn told(&mut self, node: u32, place: P) -> bool;

    /// The node does not answer at its known place.
    fn forget(&mut self, node: u32);
}
