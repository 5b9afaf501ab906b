// corosensei: a coroutine takes a pair of values with each resume and gives one with each suspend.
#[path = "../harness.rs"]
#[allow(dead_code)]
mod harness;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};

fn step(values: (u64, u64)) -> (u64, u64) {
    (values.0 + 1, values.1 + 3)
}

fn main() {
    let stack = DefaultStack::new(harness::input("STACK") as usize).expect("a stack");
    let mut coroutine = Coroutine::<(u64, u64), (u64, u64), ()>::with_stack(stack, |yielder, mut values| loop {
        values = yielder.suspend(step(values));
    });
    let mut values = (7, 11);
    let ns = harness::ns_per_operation(10, |n| {
        let before = values;
        let mut now = before;
        for _ in 0..n / 2 {
            match coroutine.resume(now) {
                CoroutineResult::Yield(sent) => now = step(sent),
                CoroutineResult::Return(()) => break,
            }
        }
        values = now;
        harness::check(
            values.0 - before.0 == n && values.1 - before.1 == 3 * n,
            "both values arrive with every switch",
        );
    });
    harness::row("transfer", "corosensei", r#"{"values":2}"#, "ns", ns, "half of a resume and a suspend");
    std::process::exit(0);
}
