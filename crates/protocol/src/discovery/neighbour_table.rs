//! What a device knows of the places of nodes.

/// The address that the number of a node is bound to, as seen from one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binding {
    /// The address of this place: the number is made from it.
    Here,
    /// Another address.
    Elsewhere,
    /// None: the station that uses the number has chosen it.
    None,
}

/// What a device knows of the places of nodes. The device defines how numbers follow from
/// addresses.
pub trait NeighbourTable<P> {
    /// The address that the number `node` is bound to.
    fn binding(&self, node: u32, place: P) -> Binding;

    /// Where `node` was last heard, or found for the user, if that is a station other than the one
    /// at `place`.
    fn other_place(&self, node: u32, place: P) -> Option<P>;

    /// `node` has proved that it is at `place`.
    fn heard(&mut self, node: u32, place: P);

    /// A Here for `node` came from `place`. Returns whether that is a further place: by an
    /// interface that did not reach the node before. A known place is not changed.
    fn announced(&mut self, node: u32, place: P) -> bool;

    /// The node does not answer at its known place.
    fn forget(&mut self, node: u32);
}
