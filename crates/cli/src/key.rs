//! `bellwire key`: makes, shows and changes key files.

use crate::command::{Outcome, WrongUsage, print_json};
use anyhow::Result;
use bellwire_keys::{KEY_BYTES, Key, KeyFile, parse_key, print_key, public_of};
use clap::Subcommand;
use std::path::PathBuf;

/// Makes, shows and changes the key files of network devices
#[derive(clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
A device with a key talks only to peers with the same shared key, or whose public keys are listed.
All else is dropped without an answer. docs/keys.md explains which kind of key to choose.

Examples:
  bellwire key new --shared cluster.key            one file for all hosts; copy it by scp
  bellwire perf 'udp:10.0.0.1?key=cluster.key' --listen
  BELLWIRE_KEY=cluster.key mpirun ...              programs that know nothing of keys

  bellwire key new near.key                        a private key; prints the public one
  bellwire key authorize near.key PUBLIC far       now the owner of PUBLIC may talk to us"
)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Makes a key file, which only you can read, and prints what peers need
    New {
        /// The file; it must not exist
        file: PathBuf,
        /// A key that all peers have, in place of a private key with a list of peers
        #[arg(long)]
        shared: bool,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Prints what is not secret in a key file
    Show {
        /// The file
        file: PathBuf,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Adds the public key of a peer to a key file
    Authorize {
        /// Our file, with a private key
        file: PathBuf,
        /// The peer's public key, as `bellwire key show` prints it there
        key: String,
        /// A name for people
        name: Option<String>,
    },
}

/// Runs one of the commands.
pub fn run(arguments: &Arguments) -> Result<Outcome> {
    match &arguments.what {
        What::New { file, shared, json } => {
            let mut key: Key = [0; KEY_BYTES];
            bellwire_device::fill_random(&mut key)?;
            let made = match shared {
                true => KeyFile::Shared(key),
                false => KeyFile::Private { key, peers: Vec::new() },
            };
            made.create(file)?;
            show(&made, *json)?;
        }
        What::Show { file, json } => show(&KeyFile::read(file)?, *json)?,
        What::Authorize { file, key, name } => authorize(file, key, name.as_deref())?,
    }
    Ok(Outcome::Done)
}

fn authorize(file: &std::path::Path, key: &str, name: Option<&str>) -> Result<()> {
    let peer = parse_key(key).ok_or_else(|| {
        WrongUsage::error("a public key has 64 hexadecimal digits: `bellwire key show` prints it")
    })?;
    let name = name.unwrap_or_default();
    if name.contains(char::is_control) {
        return Err(WrongUsage::error("a name is one line"));
    }
    let KeyFile::Private { key, mut peers } = KeyFile::read(file)? else {
        return Err(WrongUsage::error(
            "a file with a shared key lists no peers: give them the file, or make another without --shared",
        ));
    };
    match peers.iter_mut().find(|(known, _)| *known == peer) {
        Some(known) => known.1 = name.to_owned(),
        None => peers.push((peer, name.to_owned())),
    }
    let changed = KeyFile::Private { key, peers };
    // What a device would refuse is not written.
    KeyFile::parse(&changed.print())?;
    changed.replace(file)?;
    Ok(())
}

fn show(file: &KeyFile, json: bool) -> Result<()> {
    match file {
        KeyFile::Shared(key) => {
            let print = blake3::derive_key("bellwire 1: fingerprint of a shared key", key);
            let print = &print_key(&print)[..16];
            if json {
                return print_json(&serde_json::json!({ "kind": "shared", "fingerprint": print }));
            }
            println!("shared key, fingerprint {print}: equal on all hosts");
        }
        KeyFile::Private { key, peers } => {
            let public = print_key(&public_of(key));
            if json {
                let peer = |(key, name): &(Key, String)| serde_json::json!({ "key": print_key(key), "name": name });
                let peers: Vec<_> = peers.iter().map(peer).collect();
                return print_json(
                    &serde_json::json!({ "kind": "private", "public": public, "peers": peers }),
                );
            }
            println!("public key {public}: peers list it by `bellwire key authorize`");
            for (key, name) in peers {
                println!("peer       {} {name}", print_key(key));
            }
            if peers.is_empty() {
                println!("no peer is listed yet, so nobody can talk to a device with this file");
            }
        }
    }
    Ok(())
}
