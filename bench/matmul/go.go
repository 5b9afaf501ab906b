// A goroutine for the first half of C; the caller multiplies the second half and waits.
package main

import (
	"fmt"
	"runtime"
	"slices"
	"sync"

	"pirn/bench/harness"
)

type matrices struct {
	size    int
	a, b, c []float64
}

func newMatrices(size int) *matrices {
	m := &matrices{size, make([]float64, size*size), make([]float64, size*size), make([]float64, size*size)}
	// Small whole numbers, so that every sum is exact.
	random := uint64(1)
	for _, each := range [][]float64{m.a, m.b} {
		for i := range each {
			random = random*6364136223846793005 + 1442695040888963407
			each[i] = float64(random >> 61)
		}
	}
	return m
}

// The beginning, in C and along the sums, and the size.
type block struct{ row, column, depth, rows, columns, depths int }

func multiplySmall(m *matrices, at block) {
	for i := at.row; i < at.row+at.rows; i++ {
		c := m.c[i*m.size+at.column:][:at.columns]
		for k := at.depth; k < at.depth+at.depths; k++ {
			factor := m.a[i*m.size+k]
			b := m.b[k*m.size+at.column:][:len(c)]
			for j := range c {
				c[j] += factor * b[j]
			}
		}
	}
}

func multiply(m *matrices, at block) {
	const small = 32
	if at.rows <= small && at.columns <= small && at.depths <= small {
		multiplySmall(m, at)
		return
	}
	first, second := at, at
	if at.rows >= at.columns && at.rows >= at.depths {
		first.rows /= 2
		second.row += first.rows
		second.rows -= first.rows
	} else if at.columns >= at.depths {
		first.columns /= 2
		second.column += first.columns
		second.columns -= first.columns
	} else {
		first.depths /= 2
		second.depth += first.depths
		second.depths -= first.depths
		multiply(m, first)
		multiply(m, second)
		return
	}
	var done sync.WaitGroup
	done.Add(1)
	go func() {
		multiply(m, first)
		done.Done()
	}()
	multiply(m, second)
	done.Wait()
}

// isProduct returns whether C x = A (B x) for a vector of small numbers (Freivalds 1977).
func isProduct(m *matrices) bool {
	times := func(matrix, vector []float64) []float64 {
		result := make([]float64, m.size)
		for i := range result {
			for j, element := range vector {
				result[i] += matrix[i*m.size+j] * element
			}
		}
		return result
	}
	x := make([]float64, m.size)
	for i := range x {
		x[i] = float64(i * i % 11)
	}
	return slices.Equal(times(m.c, x), times(m.a, times(m.b, x)))
}

func main() {
	workers, size := harness.Input("WORKERS"), harness.Input("MATRIX")
	runtime.GOMAXPROCS(workers)
	m := newMatrices(size)
	operations := size * size * size
	ns := harness.NsPerOperationBy(harness.ClockFor(workers), operations, func(n int) {
		for done := 0; done < n; done += operations {
			for i := range m.c {
				m.c[i] = 0
			}
			multiply(m, block{rows: size, columns: size, depths: size})
			harness.Check(isProduct(m), "the product")
		}
	})
	harness.Row("matmul", fmt.Sprintf(`{"workers":%d}`, workers), "ns", ns, "goroutines")
}
