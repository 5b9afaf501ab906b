// corosensei on a reused stack.
#[path = "../harness.rs"]
#[allow(dead_code)]
mod harness;

use corosensei::stack::DefaultStack;
use corosensei::Coroutine;
use std::cell::Cell;

fn main() {
    let ran = &*Box::leak(Box::new(Cell::new(0u64)));
    let mut stack = Some(DefaultStack::new(harness::input("STACK") as usize).expect("a stack"));
    let ns = harness::ns_per_operation(10, |n| {
        let before = ran.get();
        let mut unused = stack.take().expect("a stack");
        for _ in 0..n {
            let mut one = Coroutine::<(), (), (), _>::with_stack(unused, |_, ()| ran.set(ran.get() + 1));
            one.resume(());
            unused = one.into_stack();
        }
        stack = Some(unused);
        harness::check(ran.get() - before == n, "every coroutine runs once");
    });
    harness::row("coro-spawn", "corosensei", "{}", "ns", ns, "on a reused stack");
}
