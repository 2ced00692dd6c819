//! A program in the manner of its time: `period.c`, compiled as strict C89 from `vipl.h` alone, and run as it would have been.

use crate::system::{Running, compile_as, folder, here};

/// Client and server in one source of strict C89, with the NIC by the name of a cLAN card and the host by its name, connect and get their work
/// done: requests by send, answers by RDMA write with immediate data, a completion queue, credits; over shared memory and over UDP.
// shows: M-01, M-02, M-03
#[test]
fn a_program_of_the_time_runs() {
    let strict = ["-std=c89", "-pedantic-errors"];
    let folder = folder("period");
    let program =
        compile_as(&strict, &folder, "period", &[here("tests/c/period.c")], &here("include"));
    let process = std::process::id();
    let shm = format!("shm:vipl-period-{process}");
    let [served, asks] =
        [1, 2].map(|host| format!("127.{}.{}.{host}", 120 + (process >> 8 & 63), process & 255));
    for (server, client, host) in
        [(shm.clone(), shm, "localhost"), (format!("udp:{served}"), format!("udp:{asks}"), &served)]
    {
        let mut serves = Running::start(&program, &["server"], &[("BELLWIRE_DEVICE", &server)]);
        assert_eq!(serves.line(), "ready");
        let asks = Running::start(&program, &["client", host], &[("BELLWIRE_DEVICE", &client)]);
        assert_eq!(asks.succeed(), "200 answers\n");
        serves.succeed();
    }
}
