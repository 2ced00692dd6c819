//! A listener, and senders that send arbitrary messages.

use super::{DEADLINE, Running, bellwire, wait};
use bellwire::{
    Address, CompletionQueue, Device, DeviceOptions, Error, Function, KeySource, Message, Put,
    QueuePair, QueuePairOptions, RemoteKey, Wait,
};
use bellwire_keys::{Code, KeyFile, Pairing, Side};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::thread::JoinHandle;

/// A sender's greeting.
pub const VERSION: &[u8] = b"bellwire copy 3";

/// The function of a listener that takes copies, and the one that takes codes.
pub const RECEIVER: u8 = 1;
pub const PAIRING: u8 = 2;

/// A listener, and its standard error.
pub struct Listener {
    pub running: Running,
    complaints: JoinHandle<Vec<String>>,
}

impl Listener {
    /// Returns when it listens.
    pub fn start(device: &str, destination: &Path) -> Listener {
        Self::start_with(device, destination, None)
    }

    /// Like [`Listener::start`], with a planted fault if the command was built with the feature
    /// `canaries`.
    pub fn start_with(device: &str, destination: &Path, fault: Option<&str>) -> Listener {
        let mut command = bellwire();
        command.args(["copy", "--json", "--device", device, "--listen"]).arg(destination);
        // Who listens on a network without a code or a key says so.
        command.args(device.starts_with("udp:").then_some("--plain"));
        command.envs(fault.map(|fault| ("BELLWIRE_CANARY", fault)));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = Running(command.spawn().expect("it starts"));
        let mut lines = BufReader::new(child.0.stderr.take().expect("piped")).lines();
        let first = lines.next().expect("a line").expect("text");
        assert!(first.starts_with("Listening as node "), "{first}");
        let complaints = std::thread::spawn(move || lines.map_while(Result::ok).collect());
        Listener { running: child, complaints }
    }

    /// Waits for its end; returns the exit code, its reports, and its errors.
    pub fn end(mut self) -> (i32, Vec<Value>, Vec<String>) {
        let mut output = self.running.0.stdout.take().expect("piped");
        let code = wait(&mut self.running.0);
        let mut text = String::new();
        std::io::Read::read_to_string(&mut output, &mut text).expect("a pipe");
        let reports = serde_json::Deserializer::from_str(&text).into_iter();
        let reports = reports.collect::<Result<_, _>>().expect("JSON");
        (code, reports, self.complaints.join().expect("no panic"))
    }
}

/// A sender under the test's control.
pub struct Stranger {
    pub function: Function,
    pub pair: QueuePair,
    queue: CompletionQueue,
    pub key: Option<RemoteKey>,
    /// The origin by which the listener distinguishes senders.
    pub origin: u8,
}

impl Stranger {
    /// Asks node 0 for a connection, with the greeting `who`.
    pub fn connect(device: &str, who: &[u8]) -> Result<Stranger, Error> {
        let to = Address::new(0, RECEIVER, 1);
        Self::connect_to(&Device::open(device)?, to, who).map(|(stranger, _)| stranger)
    }

    /// Asks for a connection. Returns what the listener has answered, too.
    pub fn connect_to(
        device: &Device,
        to: Address,
        who: &[u8],
    ) -> Result<(Stranger, Vec<u8>), Error> {
        let mut function = device.open_function(0)?;
        let queue = function.create_completion_queue(256)?;
        let pair = function.create_queue_pair(&QueuePairOptions::new(queue))?;
        for _ in 0..32 {
            function.post_receive(pair, vec![0; 48 << 10], 0).map_err(Error::from)?;
        }
        let answer = function.connect(pair, to, who, DEADLINE)?;
        Ok((Stranger { function, pair, queue, key: None, origin: 7 }, answer))
    }

    /// Proves `code` to the listener on `device`, whose node we share, and connects under the key
    /// that follows.
    pub fn paired(device: &str, code: &Code) -> Stranger {
        let plain = Device::open(device).expect("loopback");
        let node = plain.node();
        let pairing = Pairing::begin(code, Side::Sender);
        let request = [b"bellwire pairing 1:", &pairing.message()[..]].concat();
        let at = Address::new(node, PAIRING, 1);
        let (mut stranger, answer) = Stranger::connect_to(&plain, at, &request).expect("accepted");
        let paired = pairing.finish(&answer).expect("a message of the exchange");
        stranger.say(&json!({ "Proof": paired.proof() }).to_string());
        let proof = serde_json::from_value(stranger.hear()["Proof"].clone()).expect("a proof");
        let key = paired.confirm(&proof).expect("the right code");
        let shown = blake3::derive_key("bellwire copy 3: greeting after a code", &key);
        let key = KeyFile::Shared(key);
        drop(stranger);
        let options = DeviceOptions::default().key(KeySource::text(key.print()));
        let sealed = Device::open_with(device, &options).expect("loopback");
        let at = Address::new(node, RECEIVER, 1);
        Stranger::connect_to(&sealed, at, &[VERSION, &shown].concat()).expect("accepted").0
    }

    /// Connects, as soon as there is a place.
    pub fn accepted(device: &str) -> Stranger {
        let mut connected = None;
        super::until("a connection", || {
            match Stranger::connect(device, VERSION) {
                Err(Error::Rejected { reason, .. }) if reason.starts_with("wait ") => {}
                other => connected = Some(other.expect("accepted")),
            }
            connected.is_some()
        });
        connected.expect("until it is")
    }

    pub fn say(&mut self, what: &str) {
        let send = Message::inline(what.as_bytes());
        self.function.post_send(self.pair, send).map_err(Error::from).expect("room");
    }

    /// Sends a message, unless the connection has ended.
    pub fn try_to_say(&mut self, what: &str) {
        let _ = self.function.post_send(self.pair, Message::inline(what.as_bytes()));
    }

    /// The next message.
    pub fn hear(&mut self) -> Value {
        self.try_to_hear().expect("the connection lasts")
    }

    /// The next message; an error if the connection has ended.
    pub fn try_to_hear(&mut self) -> Result<Value, String> {
        let mut heard = Ok(None);
        super::until("an answer", || {
            heard = self.look();
            !matches!(heard, Ok(None))
        });
        heard.map(|heard| heard.expect("until it is"))
    }

    /// Puts `data` to the listener's memory; an error if that fails.
    pub fn put(&mut self, data: &[u8]) -> Result<(), String> {
        let to = self.key.expect("a key").slice(0, data.len() as u64);
        let put = Put::new(data.to_vec(), to);
        self.function
            .post_put(self.pair, put)
            .map_err(|refused| Error::from(refused).to_string())?;
        loop {
            let done = self.function.wait(self.queue, Wait::Adaptive, DEADLINE).expect("its end");
            if !done.status.is_success() {
                return Err(done.status.to_string());
            }
            if done.operation == bellwire::Operation::Put {
                return Ok(());
            }
        }
    }

    /// The next message, if it has arrived; an error if the connection has ended.
    pub fn look(&mut self) -> Result<Option<Value>, String> {
        while let Some(done) = self.function.poll(self.queue).expect("a queue") {
            if !done.status.is_success() {
                return Err(done.status.to_string());
            }
            if done.operation == bellwire::Operation::Receive {
                let bytes = done.buffer.expect("a buffer").into_bytes(done.length);
                // The connection may have ended meanwhile.
                let _ = self.function.post_receive(self.pair, vec![0; 48 << 10], 0);
                return Ok(Some(serde_json::from_slice(&bytes).expect("JSON")));
            }
        }
        Ok(None)
    }

    /// Announces a source called `name`.
    pub fn hello(&mut self, name: &str, folder: bool) -> Value {
        let origin = vec![self.origin; 32];
        let hello =
            json!({ "name": text(name), "folder": folder, "bytes": u64::MAX, "origin": origin });
        self.say(&json!({ "Hello": hello }).to_string());
        let answer = self.hear();
        if let Some(key) = answer["Ready"]["key"].as_array() {
            let bytes: Vec<u8> = key.iter().map(|b| b.as_u64().expect("a byte") as u8).collect();
            self.key = RemoteKey::from_bytes(&bytes);
        }
        answer
    }

    /// Begins to send a file of `size` bytes called `name`, or a folder with such a file; an error
    /// if it is refused.
    pub fn begin_file(&mut self, name: &str, is_folder: bool, size: u64) -> Result<(), String> {
        let answer = self.hello(name, is_folder);
        if !answer["Ready"].is_object() {
            return Err(answer.to_string());
        }
        if is_folder {
            self.say(&folder("").to_string());
        }
        self.say(&file(if is_folder { "inside" } else { "" }, size).to_string());
        self.say(&begin().to_string());
        Ok(())
    }

    /// Sends the content of a begun file, up to one chunk, and returns the last answer.
    pub fn end_file(&mut self, content: &[u8]) -> Value {
        let hash = *blake3::hash(content).as_bytes();
        let to = self.key.expect("a key").slice(0, content.len() as u64);
        let put = Put::new(content.to_vec(), to);
        self.function.post_put(self.pair, put).map_err(Error::from).expect("room");
        self.say(&chunk(0, content.len() as u32).to_string());
        self.say(&json!({ "End": { "hash": hash } }).to_string());
        let mut tree = blake3::Hasher::new();
        let size = content.len() as u64;
        for part in [&b""[..], &0o644_u32.to_le_bytes(), b"file", &size.to_le_bytes(), &hash] {
            tree.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
        let tree = *tree.finalize().as_bytes();
        self.say(&json!({ "Finish": { "hash": tree, "failures": 0 } }).to_string());
        loop {
            let heard = self.hear();
            if heard["Credit"].is_null() {
                return heard;
            }
        }
    }

    /// Sends `what` and returns the reason of the refusal.
    pub fn turned_away(&mut self, what: &[Value]) -> String {
        for message in what {
            self.say(&message.to_string());
        }
        loop {
            match self.hear()["Failed"]["why"].as_str() {
                Some(why) => return why.to_owned(),
                None => continue,
            }
        }
    }
}

/// A name as it is in messages.
pub fn text(name: &str) -> Value {
    json!({ "Unix": name.as_bytes() })
}

pub fn entry(path: &str, mode: u32, kind: &Value) -> Value {
    json!({ "Entry": { "path": text(path), "mode": mode, "kind": kind } })
}

pub fn folder(path: &str) -> Value {
    entry(path, 0o755, &json!("Folder"))
}

pub fn file(path: &str, size: u64) -> Value {
    entry(path, 0o644, &json!({ "File": { "size": size } }))
}

pub fn link(path: &str, target: &str) -> Value {
    entry(path, 0o777, &json!({ "Link": { "target": text(target) } }))
}

pub fn begin() -> Value {
    json!({ "Begin": { "from": 0 } })
}

pub fn chunk(slot: u32, length: u32) -> Value {
    json!({ "Chunk": { "slot": slot, "length": length } })
}
