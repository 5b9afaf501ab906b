// Futures of Rust in boxes, as a recursion needs them, awaited in tokio's runtime of one thread.
#[path = "../harness.rs"]
#[allow(dead_code)]
mod harness;

use std::future::Future;
use std::pin::Pin;

#[inline(never)]
fn chain(depth: u64, sum: u64) -> Pin<Box<dyn Future<Output = u64>>> {
    Box::pin(async move {
        if depth == 1 {
            return sum + 1;
        }
        chain(depth - 1, sum).await + 1
    })
}

async fn chains(count: u64, depth: u64) -> u64 {
    let mut sum = 0;
    for _ in 0..count {
        sum = chain(depth, sum).await;
    }
    sum
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    for depth in [1, 4, 16] {
        let ns = harness::ns_per_operation(depth, |n| {
            let sum = runtime.block_on(chains(n / depth, std::hint::black_box(depth)));
            harness::check(sum == n, "every future of a chain has counted itself");
        });
        harness::row("frames", "tokio", &format!(r#"{{"depth":{depth}}}"#), "ns", ns, "boxed futures");
    }
}
