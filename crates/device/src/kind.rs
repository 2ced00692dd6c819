//! What a device's crate provides beside its [`Transport`]: its name, its settings, its opening.

use crate::{Error, NodeInfo, Result, Settings, Transport};

/// A kind of device: the type of one opening. `KINDS` of the API (`verbs/src/devices.rs`) lists all
/// kinds; a new device is one line more there.
///
/// A device is opened in three steps: its settings are parsed, what is left of them is refused, and
/// only then it is [opened](DeviceKind::open).
pub trait DeviceKind: NodeInfo + Sized + 'static {
    /// What the names of such devices begin with, before the colon.
    const NAME: &'static str;

    /// The forms of such names, for people: `udp:ADDRESS`.
    const FORMS: &'static [&'static str];

    /// Its parsed settings.
    type Options;

    /// Takes the settings that it has. `place` is what follows the colon of the name.
    ///
    /// # Errors
    /// [`Error::BadDeviceName`] for a value that it does not understand.
    fn options(place: &str, settings: &mut Settings) -> Result<Self::Options>;

    /// Opens the device. `place` is what follows the colon of the name.
    ///
    /// # Errors
    /// [`Error::BadDeviceName`] if `place` can never be right, [`Error::DeviceUnavailable`] if it
    /// cannot be used here and now.
    fn open(place: &str, options: Self::Options) -> Result<Self>;

    /// Opens a function, and hands its transport to `visitor`. The caller has checked the number,
    /// and that the function is not open yet in this opening. `weight`: its share of a receiver
    /// that several functions send to.
    ///
    /// # Errors
    /// [`Error::BadFunction`] if it cannot be opened, and errors that name a missing resource.
    fn open_function<V: TransportVisitor>(
        &self,
        function: u8,
        weight: u8,
        visitor: V,
    ) -> Result<V::Output>;
}

/// Takes an open transport of any type: a device may choose among several.
pub trait TransportVisitor {
    /// What becomes of it.
    type Output;

    /// Takes the transport.
    fn visit<T: Transport + 'static>(self, transport: T) -> Self::Output;
}

/// The weight of a function unless the program says otherwise.
pub const DEFAULT_WEIGHT: u8 = 16;

/// Refuses a weight on devices without weights. `range` says why.
///
/// # Errors
/// [`Error::OutOfRange`] for other weights than [`DEFAULT_WEIGHT`].
pub fn refuse_weight(weight: u8, range: &'static str) -> Result<()> {
    if weight == DEFAULT_WEIGHT {
        return Ok(());
    }
    Err(Error::OutOfRange { parameter: "weight", value: weight.into(), range })
}
