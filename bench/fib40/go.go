// A goroutine for the first call of each pair; the caller makes the second call and waits.
package main

import (
	"fmt"
	"runtime"
	"sync"

	"pirn/bench/harness"
)

func fib(n int) int {
	if n < 2 {
		return n
	}
	var first int
	var done sync.WaitGroup
	done.Add(1)
	go func() {
		first = fib(n - 1)
		done.Done()
	}()
	second := fib(n - 2)
	done.Wait()
	return first + second
}

func fibBySums(n int) int {
	a, b := 0, 1
	for ; n > 0; n-- {
		a, b = b, a+b
	}
	return a
}

func main() {
	workers, n := harness.Input("WORKERS"), harness.Input("FIB")
	runtime.GOMAXPROCS(workers)
	harness.Check(fib(20) == 6765, "fib(20)")
	now := harness.ClockFor(workers)
	start := now()
	result := fib(n)
	took := now() - start
	harness.Check(result == fibBySums(n), "the Fibonacci number")
	// Each addition has one call that forks.
	harness.Row("fib40", fmt.Sprintf(`{"workers":%d}`, workers), "ns", took/float64(fibBySums(n+1)-1), fmt.Sprintf("goroutines, fib(%d)", n))
}
