// tokio's runtime of one thread: tasks that all wait for one notification.
#[path = "../harness.rs"]
#[allow(dead_code)]
mod harness;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

static WAITING: AtomicU64 = AtomicU64::new(0);

fn main() {
    let fibers = harness::input("MILLION");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let before = harness::memory_bytes();
        let start = harness::now_ns();
        let mut all = Vec::with_capacity(fibers as usize);
        for _ in 0..fibers {
            let gate = gate.clone();
            all.push(tokio::spawn(async move {
                WAITING.store(WAITING.load(Relaxed) + 1, Relaxed);
                let _ = gate.acquire().await;
            }));
        }
        tokio::task::yield_now().await;
        while WAITING.load(Relaxed) < fibers {
            tokio::task::yield_now().await;
        }
        let created = (harness::now_ns() - start) / fibers as f64;
        let held = (harness::memory_bytes() - before) as f64 / fibers as f64;
        gate.close();
        for each in all {
            each.await.expect("a task that ends");
        }
        let params = |measure| format!(r#"{{"fibers":{fibers},"measure":"{measure}"}}"#);
        harness::row("million", "tokio", &params("memory"), "B", held, "stackless tasks");
        harness::row("million", "tokio", &params("create"), "ns", created, "stackless tasks");
    });
}
