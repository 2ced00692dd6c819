//! Makes the exports: a versioned symbol for each line of `exports.txt`.
//!
//! rustc gives the linker a version script of its own, which knows no version nodes. So each symbol
//! is a jump in assembly, under its version, and a second script defines the nodes.

use std::collections::BTreeSet;
use std::fmt::Write;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=exports.txt");
    let folder = std::env::var("OUT_DIR").expect("cargo gives a folder");
    let list = std::fs::read_to_string("exports.txt").expect("exports.txt is beside build.rs");
    let rows: Vec<[&str; 3]> = list
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut words = line.split_whitespace();
            [(); 3].map(|()| words.next().expect("a line has three words"))
        })
        .collect();

    let nodes: Vec<&str> = rows.iter().map(|row| row[0]).fold(Vec::new(), |mut nodes, node| {
        if nodes.last() != Some(&node) {
            nodes.push(node);
        }
        nodes
    });
    let mut script = String::new();
    let mut public = "";
    for node in nodes {
        let is_of_family = |other: &str| node.split('_').next() == other.split('_').next();
        let has_parent = !node.contains("PRIVATE") && is_of_family(public);
        let parent = if has_parent { public } else { "" };
        writeln!(script, "{node} {{ }} {parent};").expect("a string takes all");
        if !node.contains("PRIVATE") {
            public = node;
        }
    }

    // A symbol has a default version: its newest public one, or else its newest private one.
    let default = |symbol: &str| {
        let mut of_symbol = rows.iter().filter(|row| row[1] == symbol).map(|row| row[0]);
        let newest = of_symbol.clone().rfind(|node| !node.contains("PRIVATE"));
        newest.or_else(|| of_symbol.next_back())
    };
    let mut assembly = String::new();
    let mut calls = BTreeSet::new();
    let mut names = BTreeSet::new();
    for (index, [node, symbol, kind]) in rows.iter().enumerate() {
        let at = if default(symbol) == Some(node) { "@@" } else { "@" };
        let label = format!("bellwire_export_{index}");
        let target = match *kind {
            "call" => {
                calls.insert(*symbol);
                format!("jmp {{{symbol}}}")
            }
            kind => {
                names.insert(*symbol);
                format!("lea rdi, [rip + bellwire_name_{symbol}]\", \"jmp {{missing_{kind}}}")
            }
        };
        writeln!(
            assembly,
            "    \".globl {label}\", \".type {label}, @function\", \"{label}:\", \"{target}\",\n    \".size {label}, . - {label}\", \".symver {label}, {symbol}{at}{node}\","
        )
        .expect("a string takes all");
    }
    let mut text = String::from("core::arch::global_asm!(\n    \".text\",\n");
    text += &assembly;
    text += "    \".section .rodata\",\n";
    for name in names {
        writeln!(text, "    \"bellwire_name_{name}: .asciz \\\"{name}\\\"\",").expect("a string");
    }
    text += "    \".text\",\n";
    for call in calls {
        let module = match call {
            call if call.starts_with("rdma_") => "crate::cm::calls",
            call if call.starts_with('r') => "bellwire_rsockets::c",
            call if call.contains("import") => "crate::import",
            _ => "crate::calls",
        };
        writeln!(text, "    {call} = sym {module}::{call},").expect("a string");
    }
    for kind in ["null", "errno", "minus", "void"] {
        writeln!(text, "    missing_{kind} = sym crate::missing::{kind},").expect("a string");
    }
    text += ");\n";
    std::fs::write(format!("{folder}/exports.rs"), text).expect("the folder can be written");
    std::fs::write(format!("{folder}/exports.map"), script).expect("the folder can be written");
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libibverbs.so.1");
    println!("cargo:rustc-cdylib-link-arg=-Wl,--version-script={folder}/exports.map");
}
