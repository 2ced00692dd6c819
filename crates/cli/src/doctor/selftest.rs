//! A device tested by using it: two functions, one message, one put.

use anyhow::{Context, Result, bail, ensure};
use bellwire::{
    Address, Completion, CompletionQueue, Device, Error, Function, Message, Put, QueuePair,
    QueuePairOptions, Rights,
};
use std::time::{Duration, Instant};

/// Time limit of the whole test, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// The mechanism that carries the messages; an error if one is lost or altered.
pub fn run(device: &str) -> Result<String> {
    let device = Device::open(device)?;
    let mut ends = [End::open(&device, 0)?, End::open(&device, 1)?];
    let to = ends[1].address();

    let [sender, receiver] = &mut ends;
    receiver
        .function
        .post_receive(receiver.queue_pair, vec![0; 64], 0)
        .map_err(Error::from)
        .context("a receive")?;
    let message = b"does it carry?";
    sender
        .function
        .post_send(sender.queue_pair, Message::inline(message).to(to))
        .map_err(Error::from)
        .context("a message")?;
    let arrived = completion(&mut ends, 1).context("a message")?;
    let bytes = arrived.buffer.map(|buffer| buffer.into_bytes(arrived.length));
    ensure!(bytes.as_deref() == Some(message), "a message arrived altered");
    completion(&mut ends, 0).context("a message's completion")?;

    let [sender, receiver] = &mut ends;
    let region =
        receiver.function.allocate_region(4096, Rights::REMOTE_WRITE).context("a region")?;
    let data: Vec<u8> = (0..4096).map(|at| (at % 251) as u8).collect();
    let put = Put::new(data.clone(), region.remote_key());
    sender.function.post_put(sender.queue_pair, put).map_err(Error::from).context("a put")?;
    completion(&mut ends, 0).context("a put")?;
    let mut found = vec![0; data.len()];
    region.read(0, &mut found);
    ensure!(found == data, "a put arrived altered");
    Ok(device.describe())
}

/// A function with a queue pair.
struct End {
    function: Function,
    completions: CompletionQueue,
    queue_pair: QueuePair,
}

impl End {
    fn open(device: &Device, number: u8) -> Result<End> {
        let mut function = device.open_function(number)?;
        let completions = function.create_completion_queue(16)?;
        let queue_pair = function.create_queue_pair(&QueuePairOptions::new(completions))?;
        Ok(End { function, completions, queue_pair })
    }

    fn address(&self) -> Address {
        let owner = self.function.address();
        Address::new(owner.node, owner.function, self.queue_pair.number)
    }
}

/// The next completion of one end, while both make progress.
fn completion(ends: &mut [End; 2], whose: usize) -> Result<Completion> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        for end in ends.iter_mut() {
            end.function.progress()?;
        }
        let End { function, completions, .. } = &mut ends[whose];
        if let Some(completion) = function.poll(*completions)? {
            ensure!(completion.status.is_success(), "{}", completion.status);
            return Ok(completion);
        }
        if Instant::now() > deadline {
            bail!("nothing happened within {} s", PATIENCE.as_secs());
        }
    }
}
