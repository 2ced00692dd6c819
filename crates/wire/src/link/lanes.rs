//! The special symbols of single lanes (PCI Express base specification 2.0, section 4.2.1.2).
//!
//! ```text
//!   lane 0   COM  SKP   ..
//!   lane 1   COM  SKP   ..        all lanes at once; SKP may be left out and added on the way
//!
//!   lane 0   COM  TS1  0  0  ..
//!   lane 1   COM  TS1  0  0  ..   training sequences, or TS2; zeros are behind it
//! ```

/// K28.5: begins what single lanes say. Its code word occurs nowhere else, so a receiver finds
/// symbols by it, and lanes that are late.
pub const COM: u8 = 0xbc;
/// K28.0: fills up behind it.
pub const SKP: u8 = 0x1c;
/// D10.2, the identifier of the first training sequence (section 4.2.4.1): the sender is not ready.
pub const TS1: u8 = 0x4a;
/// D5.2, that of the second one: the sender hears all lanes.
pub const TS2: u8 = 0x45;
