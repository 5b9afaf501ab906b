// Goroutines and a WaitGroup for each pair.
package main

import (
	"fmt"
	"runtime"
	"sync"

	"pirn/bench/harness"
)

// As in fib.hpp.
const number, value, units = 14, 377, 609

func fib(n int) int {
	if n < 2 {
		return n
	}
	var first int
	var other sync.WaitGroup
	other.Add(1)
	go func() {
		first = fib(n - 1)
		other.Done()
	}()
	second := fib(n - 2)
	other.Wait()
	return first + second
}

func main() {
	workers := harness.Input("WORKERS")
	runtime.GOMAXPROCS(workers)
	ns := harness.NsPerOperationBy(harness.ClockFor(workers), units, func(n int) {
		for done := 0; done < n; done += units {
			harness.Check(fib(number) == value, "the number is the right one")
		}
	})
	harness.Row("fib", fmt.Sprintf(`{"workers":%d}`, workers), "ns", ns, "one goroutine for each call but the last of two")
}
