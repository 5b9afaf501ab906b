// A goroutine for the first of the remaining free places; the caller continues with the others and waits.
package main

import (
	"fmt"
	"runtime"
	"sync"

	"pirn/bench/harness"
)

type board struct{ all, columns, diagonals, antidiagonals uint32 }

type placed struct{ solutions, queens int }

// The solutions for boards of 0 to 15.
var solutions = []int{1, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596, 2279184}

func placeIn(where board, free uint32) placed {
	first := free & -free
	if first == free {
		below := placeRow(board{where.all, where.columns | first, (where.diagonals | first) << 1,
			(where.antidiagonals | first) >> 1})
		below.queens++
		return below
	}
	var a placed
	var done sync.WaitGroup
	done.Add(1)
	go func() {
		a = placeIn(where, first)
		done.Done()
	}()
	b := placeIn(where, free&^first)
	done.Wait()
	return placed{a.solutions + b.solutions, a.queens + b.queens}
}

func placeRow(where board) placed {
	if where.columns == where.all {
		return placed{1, 0}
	}
	free := where.all &^ (where.columns | where.diagonals | where.antidiagonals)
	if free == 0 {
		return placed{}
	}
	return placeIn(where, free)
}

func main() {
	workers, size := harness.Input("WORKERS"), harness.Input("QUEENS")
	runtime.GOMAXPROCS(workers)
	solve := func() int {
		found := placeRow(board{all: 1<<size - 1})
		harness.Check(found.solutions == solutions[size], "the number of solutions")
		return found.queens
	}
	queens := solve()
	ns := harness.NsPerOperationBy(harness.ClockFor(workers), queens, func(n int) {
		for done := 0; done < n; done += queens {
			solve()
		}
	})
	harness.Row("nqueens", fmt.Sprintf(`{"workers":%d}`, workers), "ns", ns, "goroutines")
}
