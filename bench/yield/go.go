// Goroutines on one thread or two and runtime.Gosched.
package main

import (
	"fmt"
	"runtime"
	"sync"

	"pirn/bench/harness"
)

func main() {
	fibers := harness.Input("FIBERS")
	workers := harness.Input("WORKERS")
	runtime.GOMAXPROCS(workers)
	ns := harness.NsPerOperationBy(harness.ClockFor(workers), fibers, func(n int) {
		yields := make([]int, fibers)
		var all sync.WaitGroup
		all.Add(fibers)
		for i := 0; i < fibers; i++ {
			go func(count *int) {
				for k := 0; k < n/fibers; k++ {
					runtime.Gosched()
					*count++
				}
				all.Done()
			}(&yields[i])
		}
		all.Wait()
		sum := 0
		for _, count := range yields {
			sum += count
		}
		harness.Check(sum == n, "every goroutine yields as often as asked")
	})
	harness.Row("yield", harness.WithWorkers(fmt.Sprintf(`{"fibers":%d}`, fibers), workers), "ns", ns, "runtime.Gosched")
}
