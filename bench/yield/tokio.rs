// tokio's runtime of one thread and its own yield_now.
#[path = "../harness.rs"]
#[allow(dead_code)]
mod harness;

use std::cell::Cell;
use std::rc::Rc;

fn main() {
    let fibers = harness::input("FIBERS");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let ns = harness::ns_per_operation(fibers, |n| {
        let yields = Rc::new(Cell::new(0u64));
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime, async {
            let mut all = Vec::new();
            for _ in 0..fibers {
                let yields = yields.clone();
                all.push(tokio::task::spawn_local(async move {
                    for _ in 0..n / fibers {
                        tokio::task::yield_now().await;
                        yields.set(yields.get() + 1);
                    }
                }));
            }
            for each in all {
                each.await.expect("a task that ends");
            }
        });
        harness::check(yields.get() == n, "every task yields as often as asked");
    });
    let params = format!(r#"{{"fibers":{fibers}}}"#);
    harness::row("yield", "tokio", &params, "ns", ns, "runtime of one thread, yield_now");
}
