// rayon's join. The halves of C are disjoint, which the type of a slice cannot express, hence the pointer.
#[path = "../forks.rs"]
#[allow(dead_code)]
mod forks;

use forks::*;

struct Matrices {
    size: usize,
    a: Vec<f64>,
    b: Vec<f64>,
}

fn matrices(size: usize) -> Matrices {
    // Small whole numbers, so that every sum is exact.
    let mut random = 1u64;
    let mut fill = || -> Vec<f64> {
        (0..size * size)
            .map(|_| {
                random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (random >> 61) as f64
            })
            .collect()
    };
    let a = fill();
    Matrices { size, a, b: fill() }
}

#[derive(Clone, Copy)]
struct Product(*mut f64);
unsafe impl Send for Product {}
unsafe impl Sync for Product {}

/// The beginning, in C and along the sums, and the size.
#[derive(Clone, Copy)]
struct Block {
    row: usize,
    column: usize,
    depth: usize,
    rows: usize,
    columns: usize,
    depths: usize,
}

fn multiply_small(m: &Matrices, product: Product, at: Block) {
    for i in at.row..at.row + at.rows {
        // No other worker has this part of C.
        let c = unsafe { std::slice::from_raw_parts_mut(product.0.add(i * m.size + at.column), at.columns) };
        for k in at.depth..at.depth + at.depths {
            let factor = m.a[i * m.size + k];
            let b = &m.b[k * m.size + at.column..][..at.columns];
            for (sum, element) in c.iter_mut().zip(b) {
                *sum += factor * element;
            }
        }
    }
}

fn multiply(m: &Matrices, c: Product, at: Block) {
    const SMALL: usize = 32;
    if at.rows <= SMALL && at.columns <= SMALL && at.depths <= SMALL {
        return multiply_small(m, c, at);
    }
    let (mut first, mut second) = (at, at);
    if at.rows >= at.columns && at.rows >= at.depths {
        first.rows /= 2;
        second.row += first.rows;
        second.rows -= first.rows;
    } else if at.columns >= at.depths {
        first.columns /= 2;
        second.column += first.columns;
        second.columns -= first.columns;
    } else {
        first.depths /= 2;
        second.depth += first.depths;
        second.depths -= first.depths;
        multiply(m, c, first);
        return multiply(m, c, second);
    }
    rayon::join(|| multiply(m, c, first), || multiply(m, c, second));
}

/// Returns whether C x = A (B x) for a vector of small numbers (Freivalds 1977).
fn is_product(m: &Matrices, c: &[f64]) -> bool {
    let times = |matrix: &[f64], vector: &[f64]| -> Vec<f64> {
        matrix.chunks(m.size).map(|row| row.iter().zip(vector).map(|(a, b)| a * b).sum()).collect()
    };
    let x: Vec<f64> = (0..m.size).map(|i| (i * i % 11) as f64).collect();
    times(c, &x) == times(&m.a, &times(&m.b, &x))
}

fn main() {
    on_workers(|workers| {
        let size = input("MATRIX") as usize;
        let m = matrices(size);
        let mut c = vec![0.0; size * size];
        measure("matmul", workers, (size * size * size) as u64, || {
            c.fill(0.0);
            let whole = Block { row: 0, column: 0, depth: 0, rows: size, columns: size, depths: size };
            multiply(&m, Product(c.as_mut_ptr()), whole);
            check(is_product(&m, &c), "the product");
        });
    });
}
