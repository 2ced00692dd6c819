//! How often a program that only posts looks around.

use crate::world::*;
use bellwire::*;

/// How often posts looked around, after each of `posts` posts of alternating kinds. Nobody polls.
fn looks(is_rare: bool, posts: usize) -> Vec<u64> {
    let mut world = World::new(FabricOptions { is_rare, ..FabricOptions::default() }, 2);
    let to = world.sides[1].address();
    let b = &mut world.sides[1].function;
    let memory = b.register(vec![0; 64], Rights::REMOTE_WRITE).unwrap();
    let there = memory.remote_key().slice(0, 8);
    let a = &mut world.sides[0];
    let mut after = Vec::new();
    for post in 0..posts {
        match post % 5 {
            0 => a.function.post_send(a.qp, Message::inline(b"short").to(to)).unwrap(),
            1 => a.send(to, &[1; 600], 0),
            2 => a.function.post_sends(a.qp, &mut [Message::inline(b"one").to(to)]).unwrap(),
            3 => a.function.post_put(a.qp, Put::inline(b"8 bytes.", there)).unwrap(),
            _ => a.function.post_put(a.qp, Put::new(vec![1; 8], there)).unwrap(),
        }
        after.push(world.fabric.looks());
    }
    after
}

/// Posts of all kinds that come in quick succession look once in 32, from the second one on.
#[test]
fn quick_posts_look_now_and_then() {
    let expected: Vec<u64> = (0..100).map(|post: u64| post.div_ceil(32)).collect();
    assert_eq!(looks(false, 100), expected);
}

/// Each rare post looks, but the first: before it there is no peer.
#[test]
fn each_rare_post_looks() {
    let expected: Vec<u64> = (0..20).collect();
    assert_eq!(looks(true, 20), expected);
}
