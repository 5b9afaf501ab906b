// tokio's runtime of one thread: tasks that all wait for one notification.
#[path = "../harness.rs"]
#[allow(dead_code)]
mod harness;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

static WAITING: AtomicU64 = AtomicU64::new(0);

fn main() {
    let units = harness::input("UNITS");
    harness::need_memory(units * 500);
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let gate = Arc::new(tokio::sync::Semaphore::new(0));
        let before = harness::memory_bytes();
        let mut all = Vec::with_capacity(units as usize);
        for _ in 0..units {
            let gate = gate.clone();
            all.push(tokio::spawn(async move {
                WAITING.store(WAITING.load(Relaxed) + 1, Relaxed);
                let _ = gate.acquire().await;
            }));
        }
        while WAITING.load(Relaxed) < units {
            tokio::task::yield_now().await;
        }
        let held = (harness::memory_bytes() - before) as f64 / units as f64;
        gate.close();
        for each in all {
            each.await.expect("a task that ends");
        }
        let params = format!(r#"{{"units":{units},"state":"fresh"}}"#);
        harness::row("memory", "tokio", &params, "B", held, "stackless tasks");
    });
}
