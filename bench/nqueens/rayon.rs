// rayon's join.
#[path = "../forks.rs"]
#[allow(dead_code)]
mod forks;

use forks::*;

/// The solutions for boards of 0 to 15.
const SOLUTIONS: [u64; 16] = [1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596, 2279184];

#[derive(Clone, Copy)]
struct Board {
    all: u32,
    columns: u32,
    diagonals: u32,
    antidiagonals: u32,
}

struct Placed {
    solutions: u64,
    queens: u64,
}

fn place_in(at: Board, free: u32) -> Placed {
    let first = free & free.wrapping_neg();
    if first == free {
        let mut below = place_row(Board {
            all: at.all,
            columns: at.columns | first,
            diagonals: (at.diagonals | first) << 1,
            antidiagonals: (at.antidiagonals | first) >> 1,
        });
        below.queens += 1;
        return below;
    }
    let (a, b) = rayon::join(|| place_in(at, first), || place_in(at, free & !first));
    Placed { solutions: a.solutions + b.solutions, queens: a.queens + b.queens }
}

fn place_row(at: Board) -> Placed {
    if at.columns == at.all {
        return Placed { solutions: 1, queens: 0 };
    }
    let free = at.all & !(at.columns | at.diagonals | at.antidiagonals);
    if free == 0 { Placed { solutions: 0, queens: 0 } } else { place_in(at, free) }
}

fn main() {
    on_workers(|workers| {
        let size = input("QUEENS");
        let solve = || {
            let all = std::hint::black_box((1u32 << size) - 1);
            let found = place_row(Board { all, columns: 0, diagonals: 0, antidiagonals: 0 });
            check(found.solutions == SOLUTIONS[size as usize], "the number of solutions");
            found.queens
        };
        measure("nqueens", workers, solve(), || {
            solve();
        });
    });
}
