//! A program in the style of 1998 to 2005: `period.c`, compiled as strict C89 from `vipl.h` alone,
//! and run with the names of that time.

use crate::system::{Folder, Running, compile_as, here};
use std::os::unix::fs::OpenOptionsExt;

/// Client and server in one source of strict C89 connect and do their work over shared memory and
/// UDP. They use a cLAN card's device name and the host's name. Requests go by send, answers by
/// RDMA write with immediate data, with a completion queue and credits.
// shows: M-01, M-02, M-03
#[test]
fn a_program_of_the_time_runs() {
    let strict = ["-std=c89", "-pedantic-errors"];
    let folder = Folder::new("period");
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

/// The same program is sealed under the key that the environment names. Another one with another
/// key asks first and all the time, and is not served.
#[test]
fn a_program_gets_a_key_without_a_change() {
    let strict = ["-std=c89", "-pedantic-errors"];
    let folder = Folder::new("keyed");
    let program =
        compile_as(&strict, &folder, "period", &[here("tests/c/period.c")], &here("include"));
    let process = std::process::id();
    let key = |number: u8| {
        let file = folder.join(format!("{number}.key"));
        let text = format!("shared {}\n", format!("{number:02x}").repeat(32));
        let mut options = std::fs::OpenOptions::new();
        let options = options.write(true).create_new(true).mode(0o600);
        std::io::Write::write_all(&mut options.open(&file).expect("a file"), text.as_bytes())
            .expect("a key file");
        file.to_str().expect("text").to_owned()
    };
    let (right, wrong) = (key(1), key(2));
    let [served, asks, strange] =
        [1, 2, 3].map(|host| format!("127.{}.{}.{host}", 190 + (process >> 8 & 63), process & 255));
    let start = |role: &[&str], address: &str, key: &str| {
        let device = format!("udp:{address}");
        Running::start(&program, role, &[("BELLWIRE_DEVICE", &device), ("BELLWIRE_KEY", key)])
    };
    let mut serves = start(&["server"], &served, &right);
    assert_eq!(serves.line(), "ready");
    let stranger = start(&["client", &served], &strange, &wrong);
    let client = start(&["client", &served], &asks, &right);
    assert_eq!(client.succeed(), "200 answers\n");
    serves.succeed();
    drop(stranger);
    for file in [right, wrong] {
        std::fs::remove_file(file).expect("ours");
    }
}
