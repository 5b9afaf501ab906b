// The matmul workload: C += A B for square matrices of MATRIX rows, by halving the longest side until 32 are left.
// Halves of C fork; the halves of a sum follow one another.
#pragma once

#include <cstddef>

#include "../forks.hpp"

namespace bench {

struct matrices {
  explicit matrices(std::size_t n) : size(n), a(n * n), b(n * n), c(n * n) {
    // Small whole numbers, so that every sum is exact.
    std::uint64_t random = 1;
    for (std::vector<double>* const each : {&a, &b}) {
      for (double& element : *each) {
        random = random * 6364136223846793005 + 1442695040888963407;
        element = static_cast<double>(random >> 61);
      }
    }
  }
  std::size_t size;
  std::vector<double> a, b, c;
};

struct block {
  std::size_t row, column, depth;     ///< its beginning: in C, and along the sums
  std::size_t rows, columns, depths;  ///< its size
};

inline void multiply_small(matrices& m, const block& at) {
  for (std::size_t i = at.row; i < at.row + at.rows; ++i) {
    double* const c = &m.c[i * m.size + at.column];
    for (std::size_t k = at.depth; k < at.depth + at.depths; ++k) {
      const double factor = m.a[i * m.size + k];
      const double* const b = &m.b[k * m.size + at.column];
      for (std::size_t j = 0; j < at.columns; ++j) {
        c[j] += factor * b[j];
      }
    }
  }
}

template <typename Forks>
bool multiply(matrices& m, const block& at) {
  constexpr std::size_t small = 32;
  if (at.rows <= small && at.columns <= small && at.depths <= small) {
    multiply_small(m, at);
    return true;
  }
  block first = at;
  block second = at;
  if (at.rows >= at.columns && at.rows >= at.depths) {
    first.rows = at.rows / 2;
    second.row += first.rows;
    second.rows -= first.rows;
  } else if (at.columns >= at.depths) {
    first.columns = at.columns / 2;
    second.column += first.columns;
    second.columns -= first.columns;
  } else {
    first.depths = at.depths / 2;
    second.depth += first.depths;
    second.depths -= first.depths;
    return multiply<Forks>(m, first) && multiply<Forks>(m, second);
  }
  const auto [a, b] =
      Forks::both([&] { return multiply<Forks>(m, first); }, [&] { return multiply<Forks>(m, second); });
  return a && b;
}

/// Returns whether C x = A (B x) for a vector of small numbers (Freivalds 1977).
inline bool is_product(const matrices& m) {
  const auto times = [&](const std::vector<double>& matrix, const std::vector<double>& vector) {
    std::vector<double> result(m.size);
    for (std::size_t i = 0; i < m.size; ++i) {
      for (std::size_t j = 0; j < m.size; ++j) {
        result[i] += matrix[i * m.size + j] * vector[j];
      }
    }
    return result;
  };
  std::vector<double> x(m.size);
  for (std::size_t i = 0; i < m.size; ++i) {
    x[i] = static_cast<double>(i * i % 11);
  }
  return times(m.c, x) == times(m.a, times(m.b, x));
}

/// Measures a library. An operation is a multiplication with its addition.
template <typename Forks>
void matmul_row() {
  const std::size_t size = input("MATRIX");
  matrices m(size);
  fork_row<Forks>("matmul", size * size * size, [&] {
    m.c.assign(size * size, 0);
    multiply<Forks>(m, {0, 0, 0, size, size, size});
    check(is_product(m), "the product");
  });
}

}  // namespace bench
