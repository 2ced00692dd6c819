//! Peer: TLS 1.3 over TCP, as programs seal their streams today: rustls with AES-256-GCM by the
//! same library that seals our frames. One system call per message on each side, as for plain TCP.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{cipher_suite::TLS13_AES_256_GCM_SHA384, default_provider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned,
};

use super::socket::Connection;
use super::{Contender, Kind, Start, tcp};
use crate::network::ADDRESSES;
use crate::op::Wire;
use crate::worker::{InHouse, Party, Side};

/// TLS, spinning and blocking.
pub const CONTENDER: Contender = Contender {
    name: "tls",
    about: "TLS 1.3 (rustls, AES-256-GCM) over kernel TCP, no delay, busy polling",
    kind: Kind::Peer,
    wires: &[Wire::Frames1500],
    start: Start::InHouse(InHouse::pair(tcp::OPS, open)),
};

/// The name in the leader's certificate.
const NAME: &str = "leader";

fn open(party: &Party) -> Result<Box<dyn Side>> {
    let mut socket = tcp::connect(party, ADDRESSES[0])?;
    let suites = vec![TLS13_AES_256_GCM_SHA384];
    let provider = Arc::new(CryptoProvider { cipher_suites: suites, ..default_provider() });
    if party.is_leader() {
        let made = make_certificate()?;
        let certificate = CertificateDer::from_pem_slice(&made)?;
        tell(&mut socket, &certificate)?;
        let key = PrivateKeyDer::from_pem_slice(&made)?;
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)?;
        let mut tls = ServerConnection::new(Arc::new(config))?;
        while tls.is_handshaking() {
            tls.complete_io(&mut socket).context("the handshake")?;
        }
        let stream = StreamOwned::new(tls, socket);
        Ok(Box::new(Connection::new(party.index, stream, |it, spin| it.sock.set_nonblocking(spin))))
    } else {
        let mut trusted = RootCertStore::empty();
        trusted.add(told(&mut socket)?)?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .with_root_certificates(trusted)
            .with_no_client_auth();
        let mut tls = ClientConnection::new(Arc::new(config), NAME.try_into()?)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut socket).context("the handshake")?;
        }
        let stream = StreamOwned::new(tls, socket);
        Ok(Box::new(Connection::new(party.index, stream, |it, spin| it.sock.set_nonblocking(spin))))
    }
}

/// A certificate that is good for a day, and its key.
fn make_certificate() -> Result<Vec<u8>> {
    let name = format!("/CN={NAME}");
    let names = format!("subjectAltName=DNS:{NAME}");
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    command.args(["-noenc", "-days", "1", "-keyout", "/dev/stdout", "-out", "/dev/stdout"]);
    command.args(["-subj", &name, "-addext", &names]);
    command.args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    let output = command.output().context("no openssl: apt-get install openssl")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "`openssl req` failed: {}", said.trim());
    Ok(output.stdout)
}

/// Sends the certificate that the other side shall trust. It is no part of what is measured.
fn tell(socket: &mut TcpStream, certificate: &CertificateDer) -> Result<()> {
    let length = u16::try_from(certificate.len()).context("a long certificate")?;
    socket.write_all(&length.to_le_bytes())?;
    socket.write_all(certificate).context("sending the certificate")
}

fn told(socket: &mut TcpStream) -> Result<CertificateDer<'static>> {
    let mut length = [0; 2];
    socket.read_exact(&mut length)?;
    let mut certificate = vec![0; usize::from(u16::from_le_bytes(length))];
    socket.read_exact(&mut certificate).context("receiving the certificate")?;
    Ok(certificate.into())
}
