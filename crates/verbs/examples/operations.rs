//! One function for each operation of the small-message path over `shm`, called many times. A
//! profiler counts the instructions of each: `tools/instructions.sh` compares them with the table
//! in docs/data-path.md. With the argument `extra` one of them does some work more, and the
//! comparison must fail.

use bellwire::{
    Address, Buffer, Completion, CompletionQueue, Device, Function, Message, Put, QueuePair,
    QueuePairOptions, RemoteKey, Result, Rights,
};
use std::hint::black_box;

/// Messages that are posted before any is received.
const WINDOW: usize = 64;
/// Messages that one call posts together.
const TOGETHER: usize = 16;

/// One end: a function with one queue pair.
struct End {
    function: Function,
    queue: CompletionQueue,
    queue_pair: QueuePair,
    peer: Address,
    /// Does some work more in one operation.
    extra: bool,
}

#[inline(never)]
fn post_signaled(end: &mut End, number: u64) -> Result<()> {
    for turn in 0..if end.extra { 40 } else { 0 } {
        black_box(turn);
    }
    let bytes = number.to_le_bytes();
    let send = Message::inline(&bytes).to(end.peer).context(1);
    Ok(end.function.post_send(end.queue_pair, send)?)
}

#[inline(never)]
fn post_unsignaled(end: &mut End, number: u64) -> Result<()> {
    let bytes = number.to_le_bytes();
    let send = Message::inline(&bytes).to(end.peer).unsignaled();
    Ok(end.function.post_send(end.queue_pair, send)?)
}

#[inline(never)]
fn post_16_together(end: &mut End, numbers: &[[u8; 8]; TOGETHER]) -> Result<()> {
    let mut sends = numbers.each_ref().map(|bytes| Message::inline(bytes).to(end.peer));
    Ok(end.function.post_sends(end.queue_pair, &mut sends)?)
}

#[inline(never)]
fn post_receive(end: &mut End, buffer: Buffer) -> Result<()> {
    Ok(end.function.post_receive(end.queue_pair, buffer, 2)?)
}

#[inline(never)]
fn put_signaled(end: &mut End, number: u64, key: RemoteKey) -> Result<()> {
    let bytes = number.to_le_bytes();
    let put = Put::inline(&bytes, key.slice(8, 8)).context(3);
    Ok(end.function.post_put(end.queue_pair, put)?)
}

#[inline(never)]
fn put_unsignaled(end: &mut End, number: u64, key: RemoteKey) -> Result<()> {
    let bytes = number.to_le_bytes();
    let put = Put::inline(&bytes, key.slice(8, 8)).unsignaled();
    Ok(end.function.post_put(end.queue_pair, put)?)
}

/// Polls that find nothing, one message, a stream of messages, a stream of messages that were
/// posted together, and the completion of a send. Each has a function of its own, for its count.
macro_rules! polls {
    ($($name:ident)*) => {$(
        #[inline(never)]
        fn $name(end: &mut End) -> Result<Option<Buffer>> {
            // Tells the linker that this function differs from the others.
            black_box(stringify!($name).as_ptr());
            let Some(Completion { buffer, status, .. }) = end.function.poll(end.queue)? else {
                return Ok(None);
            };
            assert!(status.is_success());
            Ok(buffer)
        }
    )*};
}
polls!(poll_nothing poll_lone poll_stream poll_stream_together poll_sent);

fn open(node: u32, extra: bool) -> Result<(Device, End)> {
    let device = Device::open(&format!("shm:operations-{}?node={node}", std::process::id()))?;
    let mut function = device.open_function(0)?;
    let queue = function.create_completion_queue(4 * WINDOW)?;
    let queue_pair = function.create_queue_pair(&QueuePairOptions::new(queue))?;
    let peer = Address::new(1 - node, 0, queue_pair.number);
    Ok((device, End { function, queue, queue_pair, peer, extra }))
}

/// Receives `count` messages by `poll`, and posts a receive for each.
fn receive(
    end: &mut End,
    count: usize,
    poll: fn(&mut End) -> Result<Option<Buffer>>,
) -> Result<()> {
    let mut received = 0;
    while received < count {
        if let Some(buffer) = poll(end)? {
            received += 1;
            post_receive(end, buffer)?;
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let extra = std::env::args().nth(1).is_some_and(|argument| argument == "extra");
    let ((_here, mut from), (_there, mut to)) = (open(0, extra)?, open(1, extra)?);
    for _ in 0..WINDOW {
        to.function.post_receive(to.queue_pair, vec![0; 8], 0)?;
    }
    let region = to.function.allocate_region(64, Rights::REMOTE_WRITE)?;
    let key = region.remote_key();
    let put = Put::inline(&[0; 8], key.slice(0, 8)).unsignaled();
    from.function.post_put(from.queue_pair, put)?;
    from.function.post_send(from.queue_pair, Message::inline(&[0; 8]).to(from.peer))?;
    // The link comes up, the peer's memory is mapped, and grants reach their full size.
    for burst in 0..64 {
        for _ in 0..if burst == 0 { 0 } else { WINDOW } {
            let send = Message::inline(&[0; 8]).to(from.peer).unsignaled();
            from.function.post_send(from.queue_pair, send)?;
        }
        for _ in 0..4 * WINDOW {
            if let Some(Completion { buffer: Some(buffer), .. }) = to.function.poll(to.queue)? {
                to.function.post_receive(to.queue_pair, buffer, 0)?;
            }
            from.function.poll(from.queue)?;
        }
    }
    for _ in 0..64 {
        for number in 0..WINDOW as u64 {
            post_signaled(&mut from, number)?;
        }
        receive(&mut to, WINDOW, poll_stream)?;
        for _ in 0..WINDOW {
            poll_sent(&mut from)?;
        }
        for number in 0..WINDOW as u64 {
            post_unsignaled(&mut from, number)?;
        }
        receive(&mut to, WINDOW, poll_stream)?;
        let numbers = [[7; 8]; TOGETHER];
        for _ in 0..WINDOW / TOGETHER {
            post_16_together(&mut from, &numbers)?;
        }
        receive(&mut to, WINDOW, poll_stream_together)?;
        for number in 0..WINDOW as u64 {
            poll_sent(&mut from)?;
            // Twice: a lane that delivered before is polled as a stream once more.
            poll_nothing(&mut to)?;
            poll_nothing(&mut to)?;
            let bytes = number.to_le_bytes();
            let send = Message::inline(&bytes).to(from.peer).unsignaled();
            from.function.post_send(from.queue_pair, send)?;
            receive(&mut to, 1, poll_lone)?;
        }
        for number in 0..WINDOW as u64 {
            put_signaled(&mut from, number, key)?;
            put_unsignaled(&mut from, number, key)?;
        }
        for _ in 0..WINDOW {
            poll_sent(&mut from)?;
        }
    }
    Ok(())
}
