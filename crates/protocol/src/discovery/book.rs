//! What is known of nodes' places.

/// To whom the number of a node belongs, as seen from one place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// To the station at this place: the number is made from its address.
    This,
    /// To another station.
    Other,
    /// To whoever has chosen it.
    Anybody,
}

/// What a device knows of nodes' places. How numbers follow from addresses is its business.
pub trait Book<P> {
    /// To whom the number `node` belongs, as far as addresses tell.
    fn owner(&self, node: u32, place: P) -> Owner;

    /// Where `node` was last heard, or found for the user, if that is another station than the one at `place`.
    fn other_place(&self, node: u32, place: P) -> Option<P>;

    /// `node` has proved that it is at `place`.
    fn heard(&mut self, node: u32, place: P);

    /// Asked for `node`, somebody at `place` answered. Tells whether that is a further place, by an interface by which the node was not
    /// reached before. A place that is known already stays.
    fn told(&mut self, node: u32, place: P) -> bool;

    /// Nobody answers for the node where it was told to be.
    fn forget(&mut self, node: u32);
}
