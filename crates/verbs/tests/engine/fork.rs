//! Forked children.

use crate::world::*;
use bellwire::*;

/// A child that uses its parent's function or device gets a named error. It can open its own, and
/// the parent works on undisturbed.
#[test]
fn a_forked_child_is_refused() {
    let mut world = World::new(FabricOptions::default(), 1);
    let side = &mut world.sides[0];
    let (own, mut packed) = (side.address(), PackedMessages::new());
    // SAFETY: the child only calls functions of this crate that take no lock that another thread
    // may hold, and _exit.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let refused = matches!(side.function.poll(side.cq), Err(Error::Forked))
            && matches!(side.function.progress(), Err(Error::Forked))
            && matches!(side.device.open_function(1), Err(Error::Forked))
            && side
                .function
                .post_receive(side.qp, Vec::new(), 0)
                .is_err_and(|refused| matches!(refused.error, Error::Forked))
            && matches!(
                side.function.gather(&mut packed, 0, b"", View::of(b"x")),
                Err(Error::Forked)
            )
            && matches!(
                side.function.post_packed(side.qp, own, &mut packed, 0, false),
                Err(Error::Forked)
            );
        // The child can open its own device, and dropping the parent's objects does no harm.
        let opens = Fabric::new(FabricOptions::default()).device(5).open_function(0).is_ok();
        drop(world);
        let refused = refused && opens;
        // SAFETY: leaves without running anything of the parent's.
        unsafe { libc::_exit(if refused { 0 } else { 1 }) }
    }
    let mut status = 0;
    // SAFETY: waits for the child made above.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child was refused everywhere");
    side.receive(8, 1);
    side.send(own, b"on", 2);
    world.settle();
    assert_eq!(world.sides[0].done.len(), 2);
}
