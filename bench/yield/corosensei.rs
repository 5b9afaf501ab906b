// corosensei: a loop resumes ten coroutines in turn. One yield is one resume and one suspend.
#[path = "../harness.rs"]
#[allow(dead_code)]
mod harness;

use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult};

fn main() {
    let fibers = harness::input("FIBERS");
    let mut all: Vec<_> = (0..fibers)
        .map(|_| {
            let stack = DefaultStack::new(harness::input("STACK") as usize).expect("a stack");
            Coroutine::<(), (), ()>::with_stack(stack, |yielder, ()| loop {
                yielder.suspend(());
            })
        })
        .collect();
    let ns = harness::ns_per_operation(fibers, |n| {
        let mut yields = 0;
        for _ in 0..n / fibers {
            for coroutine in &mut all {
                if let CoroutineResult::Yield(()) = coroutine.resume(()) {
                    yields += 1;
                }
            }
        }
        harness::check(yields == n, "every resume ends in a suspend");
    });
    let params = format!(r#"{{"fibers":{fibers}}}"#);
    harness::row("yield", "corosensei", &params, "ns", ns, "one resume and one suspend, no scheduler");
    std::process::exit(0);
}
