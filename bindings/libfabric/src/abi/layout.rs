//! The structures of `abi`, as facts for a C compiler.

use super::{constants, error, structures};
use bellwire_tagged::{AtomicOp, Datatype};

/// Every size and offset that we rely on: C expressions and our values, for the test that runs a C
/// compiler.
pub fn layout() -> Vec<(String, usize)> {
    let mut facts = [structures(), constants(), error::facts()].concat();
    // Our numbers of datatypes and operations equal libfabric's.
    for (name, number) in [("FI_INT8", Datatype::I8), ("FI_UINT64", Datatype::U64)]
        .into_iter()
        .chain([("FI_FLOAT", Datatype::F32), ("FI_DOUBLE", Datatype::F64)])
    {
        facts.push((name.to_owned(), number as usize));
    }
    for (name, change) in [
        ("FI_MIN", AtomicOp::Minimum),
        ("FI_PROD", AtomicOp::Product),
        ("FI_BOR", AtomicOp::Or),
        ("FI_BXOR", AtomicOp::Xor),
        ("FI_ATOMIC_WRITE", AtomicOp::Write),
        ("FI_CSWAP", AtomicOp::SwapEqual),
        ("FI_CSWAP_LE", AtomicOp::SwapLessEqual),
        ("FI_CSWAP_GT", AtomicOp::SwapGreater),
        ("FI_MSWAP", AtomicOp::SwapMasked),
    ] {
        facts.push((name.to_owned(), change as usize));
    }
    // The completion formats are prefixes of the longest one.
    for (format, bytes) in [("entry", 8), ("msg_entry", 24), ("data_entry", 40)] {
        facts.push((format!("sizeof(struct fi_cq_{format})"), bytes));
    }
    // Tables: each function must be at our position.
    let slot = |table: &str, function: &str, place: usize| {
        (format!("offsetof(struct fi_ops_{table}, {function})"), 8 * (place + 1))
    };
    for (table, functions) in TABLES {
        let functions = functions.split(' ').enumerate();
        facts.extend(functions.map(|(place, function)| slot(table, function, place)));
    }
    facts.push(("offsetof(struct fi_ops, ops_set)".to_owned(), 48));
    facts
}

/// The functions of the tables that we fill with more than refusals, in order.
const TABLES: [(&str, &str); 15] = [
    ("fabric", "domain passive_ep eq_open wait_open trywait domain2"),
    (
        "domain",
        "av_open cq_open endpoint scalable_ep cntr_open poll_open stx_ctx srx_ctx query_atomic query_collective endpoint2",
    ),
    ("av", "insert insertsvc insertsym remove lookup straddr av_set"),
    ("cq", "read readfrom readerr sread sreadfrom signal strerror"),
    ("eq", "read readerr write sread strerror"),
    ("cntr", "read readerr add set wait adderr seterr"),
    ("ep", "cancel getopt setopt tx_ctx rx_ctx rx_size_left tx_size_left"),
    ("cm", "setname getname getpeer connect listen accept reject shutdown join"),
    ("msg", "recv recvv recvmsg send sendv sendmsg inject senddata injectdata"),
    ("mr", "reg regv regattr"),
    ("wait", "wait"),
    ("poll", "poll poll_add poll_del"),
    ("rma", "read readv readmsg write writev writemsg inject writedata injectdata"),
    ("tagged", "recv recvv recvmsg send sendv sendmsg inject senddata injectdata"),
    (
        "atomic",
        "write writev writemsg inject readwrite readwritev readwritemsg compwrite compwritev compwritemsg writevalid readwritevalid compwritevalid",
    ),
];
