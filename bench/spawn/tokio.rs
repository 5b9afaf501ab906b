// tokio's runtime of one thread: spawn and await the handle.
#[path = "../harness.rs"]
#[allow(dead_code)]
mod harness;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

static RAN: AtomicU64 = AtomicU64::new(0);

// A load and a store: all tasks run on one thread, so the rival need not pay for a locked addition.
async fn body() {
    RAN.store(RAN.load(Relaxed) + 1, Relaxed);
}

fn main() {
    let batch = harness::input("BATCH");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut all = Vec::with_capacity(batch as usize);
    let ns = harness::ns_per_operation(batch, |n| {
        let before = RAN.load(Relaxed);
        runtime.block_on(async {
            for _ in 0..n / batch {
                for _ in 0..batch {
                    all.push(tokio::spawn(body()));
                }
                for each in all.drain(..) {
                    each.await.expect("a task that ends");
                }
            }
        });
        harness::check(RAN.load(Relaxed) - before == n, "every task of a batch runs once");
    });
    harness::row("spawn", "tokio", r#"{"mode":"batch"}"#, "ns", ns, "runtime of one thread");
    let ns = harness::ns_per_operation(10, |n| {
        let before = RAN.load(Relaxed);
        runtime.block_on(async {
            for _ in 0..n {
                tokio::spawn(body()).await.expect("a task that ends");
            }
        });
        harness::check(RAN.load(Relaxed) - before == n, "every single task runs once");
    });
    harness::row("spawn", "tokio", r#"{"mode":"single"}"#, "ns", ns, "runtime of one thread");
}
