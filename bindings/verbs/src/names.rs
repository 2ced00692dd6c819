//! Names and rates.

use std::ffi::{CStr, c_int};

pub fn node_type(value: u32) -> &'static CStr {
    match value {
        1 => c"InfiniBand channel adapter",
        2 => c"InfiniBand switch",
        3 => c"InfiniBand router",
        4 => c"iWARP NIC",
        5 => c"usNIC",
        6 => c"usNIC UDP",
        7 => c"unspecified",
        _ => c"unknown",
    }
}

pub fn port_state(value: u32) -> &'static CStr {
    match value {
        0 => c"no state change (NOP)",
        1 => c"down",
        2 => c"init",
        3 => c"armed",
        4 => c"active",
        5 => c"active defer",
        _ => c"unknown",
    }
}

pub fn event_type(value: u32) -> &'static CStr {
    const NAMES: [&CStr; 20] = [
        c"CQ error",
        c"local work queue catastrophic error",
        c"invalid request local work queue error",
        c"local access violation work queue error",
        c"communication established",
        c"send queue drained",
        c"path migrated",
        c"path migration request error",
        c"local catastrophic error",
        c"port active",
        c"port error",
        c"LID change",
        c"P_Key change",
        c"SM change",
        c"SRQ catastrophic error",
        c"SRQ limit reached",
        c"last WQE reached",
        c"client reregistration",
        c"GID table change",
        c"WQ fatal",
    ];
    NAMES.get(value as usize).copied().unwrap_or(c"unknown")
}

pub fn wc_status(value: u32) -> &'static CStr {
    const NAMES: [&CStr; 24] = [
        c"success",
        c"local length error",
        c"local QP operation error",
        c"local EE context operation error",
        c"local protection error",
        c"Work Request Flushed Error",
        c"memory management operation error",
        c"bad response error",
        c"local access error",
        c"remote invalid request error",
        c"remote access error",
        c"remote operation error",
        c"transport retry counter exceeded",
        c"RNR retry counter exceeded",
        c"local RDD violation error",
        c"remote invalid RD request",
        c"aborted error",
        c"invalid EE context number",
        c"invalid EE context state",
        c"fatal error",
        c"response timeout error",
        c"general error",
        c"TM error",
        c"TM software rendezvous",
    ];
    NAMES.get(value as usize).copied().unwrap_or(c"unknown")
}

/// Each rate: its value, its multiple of 2.5 Gb/s (0: none), and Mb/s.
const RATES: [(u32, c_int, c_int); 22] = [
    (2, 1, 2500),
    (5, 2, 5000),
    (3, 4, 10_000),
    (6, 8, 20_000),
    (4, 12, 30_000),
    (7, 16, 40_000),
    (8, 24, 60_000),
    (9, 32, 80_000),
    (10, 48, 120_000),
    (11, 0, 14_062),
    (12, 0, 56_250),
    (13, 0, 112_500),
    (14, 0, 168_750),
    (15, 0, 25_781),
    (16, 0, 103_125),
    (17, 0, 206_250),
    (18, 0, 309_375),
    (19, 0, 28_125),
    (20, 20, 50_000),
    (21, 160, 400_000),
    (22, 240, 600_000),
    (23, 320, 800_000),
];

pub fn rate_to_mult(rate: u32) -> c_int {
    let found = RATES.iter().find(|entry| entry.0 == rate && entry.1 > 0);
    found.map_or(-1, |entry| entry.1)
}

pub fn mult_to_rate(mult: c_int) -> u32 {
    RATES.iter().find(|entry| entry.1 == mult && mult > 0).map_or(0, |entry| entry.0)
}

pub fn rate_to_mbps(rate: u32) -> c_int {
    RATES.iter().find(|entry| entry.0 == rate).map_or(-1, |entry| entry.2)
}

pub fn mbps_to_rate(mbps: c_int) -> u32 {
    RATES.iter().find(|entry| entry.2 == mbps).map_or(0, |entry| entry.0)
}
