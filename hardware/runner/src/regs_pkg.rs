//! The package of the interface's registers in SystemVerilog, written from `crates/wire`.

use bellwire_wire::registers::{
    Block, COUNTS, FUNCTIONS, KEY, KEYS, LIST, LIST_REPORT, LIST_REPORTS, LISTS, PAGE, REPORTS,
    RING, RING_REPORT, RING_REPORTS, RINGS, STORE_BYTES, VERSION, WINDOW, WINDOWS,
};

use crate::pcie_pkg::packed;

/// The package.
pub fn regs_pkg() -> String {
    let kinds = [
        ("RingReport", RING_REPORTS),
        ("ListReport", LIST_REPORTS),
        ("Ring", RINGS),
        ("List", LISTS),
        ("Key", KEYS),
        ("Window", WINDOWS),
    ];
    let places: String = kinds.map(|(name, block)| places(name, block)).concat();
    let words = [
        ("ring", RING),
        ("list", LIST),
        ("window", WINDOW),
        ("key", KEY),
        ("ring_report", RING_REPORT),
        ("list_report", LIST_REPORT),
    ];
    let words: String = words.map(|(name, fields)| packed(name, fields)).join("\n");
    let counts = COUNTS.len();
    format!(
        "\
// Written by `hardware layouts` from `crates/wire`; change that.
package regs_pkg;

  // Functions, the page of registers behind theirs, and where reports begin in a function's page.
  localparam int unsigned Functions = {FUNCTIONS};
  localparam int unsigned Page = {PAGE};
  localparam int unsigned Reports = 'h{REPORTS:x};

  // Counts that are read, of which the first one is this version. Not each user has both.
  // verilator lint_off UNUSEDPARAM
  localparam int unsigned Counts = {counts};
  localparam int unsigned Version = {VERSION};
  // verilator lint_on UNUSEDPARAM

  // Bytes of a store.
  localparam int unsigned StoreBytes = {STORE_BYTES};

  // Where the first register of each kind lies in its page, and how many there are.
{places}
  // Words that are stored.
{words}
endpackage
"
    )
}

/// Place and number of the registers of a kind.
fn places(name: &str, block: Block) -> String {
    format!(
        "  localparam int unsigned {name}Place = 'h{:x};\n  localparam int unsigned {name}Count = {};\n",
        block.first, block.count
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Registers of a kind have their place and their number.
    #[test]
    fn a_kind_has_its_place() {
        let expected = "  localparam int unsigned KeyPlace = 'h700;\n  \
                        localparam int unsigned KeyCount = 32;\n";
        assert_eq!(places("Key", KEYS), expected);
    }
}
