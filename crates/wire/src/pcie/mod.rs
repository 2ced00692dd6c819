//! The packets of PCIe's transaction layer, as far as a network interface meets them: requests of
//! memory and completions (PCIe base specification 2.0, section 2.2).
//!
//! The interface's boundary sends and receives them as streams of DWs. Each DW is sent most
//! significant byte first, and the payload's bytes come in the order of their addresses.

pub mod tlp;
