// Goroutines, sync.Mutex and runtime.Gosched.
package main

import (
	"fmt"
	"runtime"
	"sync"

	"pirn/bench/harness"
)

const units = 64

type place struct {
	guard  sync.Mutex
	rounds int
	_      [48]byte
}

func main() {
	workers := harness.Input("WORKERS")
	runtime.GOMAXPROCS(workers)
	var all [8]place
	before := 0
	ns := harness.NsPerOperationBy(harness.ClockFor(workers), units*200, func(n int) {
		var running sync.WaitGroup
		running.Add(units)
		for i := 0; i < units; i++ {
			go func() {
				for k := 0; k < n/units; k++ {
					next := &all[k%len(all)]
					next.guard.Lock()
					rounds := next.rounds
					runtime.Gosched()
					next.rounds = rounds + 1
					next.guard.Unlock()
				}
				running.Done()
			}()
		}
		running.Wait()
		rounds := 0
		for i := range all {
			rounds += all[i].rounds
		}
		harness.Check(rounds-before == n, "no two goroutines hold a mutex at once")
		before = rounds
	})
	harness.Row("threads", fmt.Sprintf(`{"workers":%d}`, workers), "ns", ns, "sync.Mutex, runtime.Gosched")
}
