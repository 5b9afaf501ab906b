// harness.hpp for Rust: the inputs, the timing loop, the checker and the output row.
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns an input of the workload, set by run.py for all languages alike.
pub fn input(name: &str) -> u64 {
    let variable = format!("PIRN_BENCH_{name}");
    match std::env::var(&variable).ok().and_then(|value| value.parse().ok()) {
        Some(value) => value,
        None => {
            eprintln!("{variable} is not set: start this program by bench/run.py");
            std::process::exit(2);
        }
    }
}

/// Ends the program with a failure unless the measured work was done.
pub fn check(done: bool, what: &str) {
    if !done {
        eprintln!("check failed: {what}");
        std::process::exit(1);
    }
}

/// Ends the program because these inputs are beyond it or beyond the machine. run.py shows the reason and continues.
#[allow(dead_code)]
pub fn skip(reason: &str) -> ! {
    eprintln!("{reason}");
    std::process::exit(77);
}

/// Skips unless `bytes` bytes of memory are available, with an eighth more to spare.
#[allow(dead_code)]
pub fn need_memory(bytes: u64) {
    let meminfo = std::fs::read_to_string("/proc/meminfo").expect("/proc is mounted");
    let available = meminfo.lines().find(|line| line.starts_with("MemAvailable:"));
    let kib: u64 = available.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0);
    if bytes / 1024 > kib - kib / 8 {
        skip(&format!("needs about {} MiB of memory, and {} MiB are available", bytes >> 20, kib >> 10));
    }
}

/// Prints one result; `params` is a JSON object.
pub fn row(workload: &str, implementation: &str, params: &str, unit: &str, value: f64, note: &str) {
    println!(
        r#"{{"workload":"{workload}","impl":"{implementation}","params":{params},"unit":"{unit}","value":{value:.4},"note":"{note}"}}"#
    );
}

/// The digest of a sequence of elements, as in harness.hpp.
#[allow(dead_code)]
#[derive(Clone, Copy, Default, PartialEq)]
pub struct Digest {
    pub count: u64,
    pub hash: u64,
}

#[allow(dead_code)]
impl Digest {
    pub fn take(&mut self, element: u64) {
        self.count += 1;
        self.hash = self.hash.rotate_left(5).wrapping_add(element);
    }
}

/// Returns the median cost in nanoseconds of one of the `n` operations that `run(n)` does, as in harness.hpp.
#[allow(dead_code)]
pub fn ns_per_operation(granule: u64, run: impl FnMut(u64)) -> f64 {
    ns_per_operation_by(now_ns, granule, run)
}

/// As `ns_per_operation`, but by the given clock.
pub fn ns_per_operation_by(now: fn() -> f64, granule: u64, mut run: impl FnMut(u64)) -> f64 {
    if std::env::var_os("PIRN_BENCH_COUNT").is_some() {
        // Under `./dev bench --counts`, as in harness.hpp.
        static LOOPS: AtomicU64 = AtomicU64::new(0);
        if LOOPS.fetch_add(1, Ordering::Relaxed) == input("COUNT_LOOP") {
            run(input("COUNT").div_ceil(granule) * granule);
        }
        return 0.0;
    }
    let block_ns = input("BLOCK_MS") as f64 * 1e6;
    let mut n = granule;
    loop {
        let mut took = time(now, &mut run, n);
        if took >= block_ns {
            // A single time may be that of a machine that had to wake up first.
            took = took.min(time(now, &mut run, n));
        }
        if took >= block_ns {
            break;
        }
        let factor = if took > 0.0 { block_ns / took * 1.2 } else { 10.0 };
        n = (n as f64 * factor.min(10.0)) as u64;
        n = (n / granule + 1) * granule;
    }
    let mut blocks: Vec<f64> = (0..input("BLOCKS")).map(|_| time(now, &mut run, n) / n as f64).collect();
    blocks.sort_by(f64::total_cmp);
    blocks[blocks.len() / 2]
}

fn time(now: fn() -> f64, run: &mut impl FnMut(u64), n: u64) -> f64 {
    let start = now();
    run(n);
    now() - start
}

/// Returns the clock for work on `cores` cores.
#[allow(dead_code)]
pub fn clock_for(cores: u64) -> fn() -> f64 {
    if cores == 1 { now_ns } else { wall_ns }
}

/// Returns the time that this process has spent on its core, as in harness.hpp.
pub fn now_ns() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Returns the time on the clock in nanoseconds, for work on several cores.
#[allow(dead_code)]
pub fn wall_ns() -> f64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_nanos() as f64
}

/// Returns the resident pages and page tables of this process, in bytes.
#[allow(dead_code)]
pub fn memory_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    let kib: u64 = status
        .lines()
        .filter(|line| line.starts_with("VmRSS:") || line.starts_with("VmPTE:"))
        .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
        .sum();
    kib * 1024
}
