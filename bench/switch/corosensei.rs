// corosensei: the main function resumes a coroutine, which suspends: two switches.
#[path = "../harness.rs"]
#[allow(dead_code)]
mod harness;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};

fn main() {
    let stack = DefaultStack::new(harness::input("STACK") as usize).expect("a stack");
    let mut coroutine = Coroutine::<(), u64, ()>::with_stack(stack, |yielder, ()| {
        let mut others = 0u64;
        loop {
            others += 1;
            yielder.suspend(others);
        }
    });
    let mut sent_before = 0;
    let ns = harness::ns_per_operation(10, |n| {
        let mut sent = sent_before;
        for _ in 0..n / 2 {
            if let CoroutineResult::Yield(others) = coroutine.resume(()) {
                sent = others;
            }
        }
        harness::check(sent - sent_before == n / 2, "every switch reaches the other function");
        sent_before = sent;
    });
    harness::row("switch", "corosensei", r#"{"contexts":2}"#, "ns", ns, "half of a resume and a suspend");
    std::process::exit(0);
}
