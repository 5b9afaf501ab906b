// A task of tokio's runtime of one worker thread, woken by a plain thread.
#[path = "../harness.rs"]
#[allow(dead_code)]
mod harness;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// As in wake_latency.hpp.
const REST_NS: f64 = 60_000.0;

fn main() {
    let count = 1000 * harness::input("BLOCKS");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
    let shared = Arc::new((Semaphore::new(0), AtomicU64::new(0), AtomicU64::new(0)));
    let other = shared.clone();
    let waits = runtime.spawn(async move {
        let (woken, at, runs) = &*other;
        let mut took = Vec::with_capacity(count as usize);
        for _ in 0..count {
            woken.acquire().await.expect("it is not closed").forget();
            took.push(harness::wall_ns() - f64::from_bits(at.load(Ordering::Relaxed)));
            runs.fetch_add(1, Ordering::Release);
        }
        took
    });
    let (woken, at, runs) = &*shared;
    for i in 0..count {
        let rested = harness::wall_ns() + REST_NS;
        while harness::wall_ns() < rested {}
        at.store(harness::wall_ns().to_bits(), Ordering::Relaxed);
        woken.add_permits(1);
        while runs.load(Ordering::Acquire) == i {}
    }
    let mut took = runtime.block_on(waits).expect("a task that ends");
    harness::check(took.len() == count as usize, "every wake-up is answered once");
    took.sort_by(f64::total_cmp);
    for (name, share) in [("50", 0.5), ("99", 0.99), ("99.9", 0.999)] {
        let value = took[(share * count as f64) as usize];
        let params = format!(r#"{{"percentile":{name}}}"#);
        harness::row("wake-latency", "tokio", &params, "ns", value, "a semaphore, from a plain thread");
    }
}
