// rayon's join.
#[path = "../forks.rs"]
#[allow(dead_code)]
mod forks;

use forks::*;

fn fib(n: u64) -> u64 {
    if n < 2 {
        return n;
    }
    let (a, b) = rayon::join(|| fib(n - 1), || fib(n - 2));
    a + b
}

fn fib_by_sums(n: u64) -> u64 {
    (0..n).fold((0, 1), |(a, b), _| (b, a + b)).0
}

fn main() {
    on_workers(|workers| {
        check(fib(20) == 6765, "fib(20)");
        let n = input("FIB");
        let now = clock_for(workers);
        let start = now();
        let result = fib(n);
        let took = now() - start;
        check(result == fib_by_sums(n), "the Fibonacci number");
        // Each addition has one call that forks.
        fork_row("fib40", workers, took / (fib_by_sums(n + 1) - 1) as f64);
    });
}
