// rayon's join, by halving the ten.
#[path = "../forks.rs"]
#[allow(dead_code)]
mod forks;

use forks::*;

const LEAVES: u64 = 1_000_000;

/// The sum of `count` of the ten children, each of which has `leaves` leaves.
fn children(first: u64, leaves: u64, count: u64) -> u64 {
    if count == 1 {
        return skynet(first, leaves);
    }
    let half = count / 2;
    let (a, b) =
        rayon::join(|| children(first, leaves, half), || children(first + half * leaves, leaves, count - half));
    a + b
}

fn skynet(first: u64, leaves: u64) -> u64 {
    if leaves == 1 { first } else { children(first, leaves / 10, 10) }
}

fn main() {
    on_workers(|workers| {
        measure("skynet", workers, LEAVES, || {
            let sum = skynet(0, std::hint::black_box(LEAVES));
            check(sum == LEAVES * (LEAVES - 1) / 2, "the sum of all numbers");
        });
    });
}
