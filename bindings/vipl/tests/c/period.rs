//! A program in the style of 1998 to 2005: `period.c`, compiled as strict C89 from `vipl.h` alone,
//! and run with the names of that time.

use crate::system::{Running, compile_as, folder, here};

/// Client and server in one source of strict C89 connect and do their work over shared memory and
/// UDP. They use a cLAN card's device name and the host's name. Requests go by send, answers by
/// RDMA write with immediate data, with a completion queue and credits.
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
