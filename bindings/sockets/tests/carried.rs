//! Programs of sockets that know nothing of Bellwire: their streams are carried.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A folder for as long as the test runs.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The program in C, with the library, or without. It ends after a minute.
fn start(program: &Path, argument: &str, carried: bool) -> Child {
    let mut command = Command::new("timeout");
    command.args(["60", "env"]);
    if carried {
        let tests = std::env::current_exe().expect("the place of this program");
        let library = tests.with_file_name("libbellwire_sockets.so");
        assert!(library.exists(), "no {}", library.display());
        command.arg(format!("LD_PRELOAD={}", library.display()));
        command.args(["BELLWIRE_LOG=1", "BELLWIRE_DEVICE=auto:udp:127.0.0.1"]);
    }
    command.arg(program).arg(argument);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("timeout and env")
}

/// Runs a server with the library and a client. Returns what the client said.
fn talk(serve: &str, client_is_carried: bool) -> String {
    let name = format!("bellwire-carried-{}-{client_is_carried}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    std::fs::create_dir_all(&folder.0).expect("a folder");
    let program = folder.0.join("echo");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/echo.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-Wall", "-Werror", "-o"]).arg(&program).arg(source);
    assert!(compiler.status().expect("cc").success());

    let mut server = start(&program, serve, true);
    let mut port = String::new();
    BufReader::new(server.stdout.take().expect("piped")).read_line(&mut port).expect("a port");
    let client = start(&program, port.trim(), client_is_carried);
    let client = client.wait_with_output().expect("it runs");
    let said = String::from_utf8(client.stderr).expect("text");
    let mut server_said = String::new();
    server.stderr.take().expect("piped").read_to_string(&mut server_said).expect("text");
    let served = server.wait().expect("it ends");
    assert!(client.status.success() && served.success(), "client: {said}server: {server_said}");
    said
}

/// Bytes come back as they were sent, the end arrives, and a forked child gets `EBADF`.
#[test]
fn two_programs_have_a_stream() {
    let said = talk("serve-and-fork", true);
    assert!(said.contains("a stream to 127.0.0.1:"), "{said}");
}

/// A server serves a client without the library, too.
#[test]
fn a_client_without_the_library_is_served() {
    assert_eq!(talk("serve", false), "");
}
