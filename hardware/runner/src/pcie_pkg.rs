//! The package of PCIe's headers in SystemVerilog, written from `crates/wire`.

use bellwire_wire::pcie::tlp::{
    COMPLETION, COMPLETION_DW_1, COMPLETION_DW_2, DW_0, Field, LONG, MEMORY, OTHER_NON_POSTED,
    REQUEST_DW_1, SUCCESS, UNSUPPORTED, WITH_DATA,
};

/// The package.
pub fn pcie_pkg() -> String {
    let first = packed("dw_0", DW_0);
    let request = packed("request_dw_1", REQUEST_DW_1);
    let completion = packed("completion_dw_1", COMPLETION_DW_1);
    let completion_end = packed("completion_dw_2", COMPLETION_DW_2);
    format!(
        "\
// Written by `hardware layouts` from `crates/wire`; change that.
package pcie_pkg;

  // No block uses all of it.
  /* verilator lint_off UNUSEDPARAM */

  // Bits of a format: the header has 4 DW, and a payload follows.
  localparam logic [2:0] Long = 3'd{LONG};
  localparam logic [2:0] WithData = 3'd{WITH_DATA};

  // Types: reads and writes of memory, completions, and, with a bit for each, the others that want
  // a completion.
  localparam logic [4:0] Memory = 5'h{MEMORY:02x};
  localparam logic [4:0] Completion = 5'h{COMPLETION:02x};
  localparam logic [31:0] OtherNonPosted = 32'h{OTHER_NON_POSTED:08x};

  // What became of a request.
  localparam logic [2:0] Success = 3'd{SUCCESS};
  localparam logic [2:0] Unsupported = 3'd{UNSUPPORTED};

  /* verilator lint_on UNUSEDPARAM */

  // DWs of headers. They are sent most significant byte first.
{first}
{request}
{completion}
{completion_end}
endpackage
"
    )
}

/// A word as a packed struct.
pub fn packed(name: &str, fields: &[Field]) -> String {
    let mut text = "  typedef struct packed {\n".to_owned();
    for field in fields {
        text += &match field.width() {
            1 => format!("    logic {};\n", field.name()),
            width => format!("    logic [{}:0] {};\n", width - 1, field.name()),
        };
    }
    text + &format!("  }} {name}_t;\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A DW's struct has the fields that the format has, from the highest bit down.
    #[test]
    fn a_dword_has_the_fields_of_the_format() {
        let expected = "  typedef struct packed {\n    logic [15:0] requester;\n    \
                        logic [7:0] tag;\n    logic reserved_7;\n    \
                        logic [6:0] lower_address;\n  } some_t;\n";
        assert_eq!(packed("some", COMPLETION_DW_2), expected);
    }
}
