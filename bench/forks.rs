// Shared by the fork-join workloads of rayon: forks.hpp for Rust.
#[path = "harness.rs"]
#[allow(dead_code)]
mod harness;
pub use harness::*;

/// Runs `body` on a pool with the given number of workers.
#[allow(dead_code)]
pub fn on_workers(body: impl FnOnce(u64) + Send) {
    let workers = input("WORKERS");
    let pool = rayon::ThreadPoolBuilder::new().num_threads(workers as usize).build().expect("a pool");
    pool.install(|| body(workers));
}

/// Prints a row of rayon.
pub fn fork_row(workload: &str, workers: u64, ns: f64) {
    row(workload, "rayon", &format!(r#"{{"workers":{workers}}}"#), "ns", ns, "join");
}

/// Prints the cost of one operation of `work`, which does `count` of them and checks its result.
#[allow(dead_code)]
pub fn measure(workload: &str, workers: u64, count: u64, mut work: impl FnMut()) {
    let ns = ns_per_operation_by(clock_for(workers), count, |n| {
        for _ in 0..n / count {
            work();
        }
    });
    fork_row(workload, workers, ns);
}
