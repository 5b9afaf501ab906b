// corosensei on reused stacks: create, then resume until it has returned. It has no scheduler for a join.
#[path = "../harness.rs"]
#[allow(dead_code)]
mod harness;

use corosensei::stack::DefaultStack;
use corosensei::Coroutine;
use std::cell::Cell;

const NOTE: &str = "create and resume on a reused stack, no scheduler";

fn main() {
    let batch = harness::input("BATCH");
    let ran = &*Box::leak(Box::new(Cell::new(0u64)));
    let create = |stack| Coroutine::<(), (), (), _>::with_stack(stack, |_, ()| ran.set(ran.get() + 1));
    let mut stacks: Vec<_> = (0..batch)
        .map(|_| DefaultStack::new(harness::input("STACK") as usize).expect("a stack"))
        .collect();
    let mut all = Vec::with_capacity(batch as usize);
    let ns = harness::ns_per_operation(batch, |n| {
        let before = ran.get();
        for _ in 0..n / batch {
            all.extend(stacks.drain(..).map(create));
            for mut each in all.drain(..) {
                each.resume(());
                stacks.push(each.into_stack());
            }
        }
        harness::check(ran.get() - before == n, "every coroutine of a batch runs once");
    });
    harness::row("spawn", "corosensei", r#"{"mode":"batch"}"#, "ns", ns, NOTE);
    let ns = harness::ns_per_operation(10, |n| {
        let before = ran.get();
        let mut stack = stacks.pop().expect("a stack");
        for _ in 0..n {
            let mut one = create(stack);
            one.resume(());
            stack = one.into_stack();
        }
        stacks.push(stack);
        harness::check(ran.get() - before == n, "every single coroutine runs once");
    });
    harness::row("spawn", "corosensei", r#"{"mode":"single"}"#, "ns", ns, NOTE);
}
