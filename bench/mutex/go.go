// Goroutines and sync.Mutex.
package main

import (
	"fmt"
	"runtime"
	"sync"

	"pirn/bench/harness"
)

const units, places = 64, 4096

type place struct {
	guard sync.Mutex
	locks int
	_     [48]byte
}

func main() {
	workers := harness.Input("WORKERS")
	runtime.GOMAXPROCS(workers)
	all := make([]place, places)
	before := 0
	ns := harness.NsPerOperationBy(harness.ClockFor(workers), units*25_000, func(n int) {
		var running sync.WaitGroup
		running.Add(units)
		for i := 0; i < units; i++ {
			go func(random uint64) {
				for k := 0; k < n/units; k++ {
					random = random*6364136223846793005 + 1442695040888963407
					chosen := &all[random>>52]
					chosen.guard.Lock()
					chosen.locks++
					chosen.guard.Unlock()
				}
				running.Done()
			}(uint64(i))
		}
		running.Wait()
		locks := 0
		for i := range all {
			locks += all[i].locks
		}
		harness.Check(locks-before == n, "no two goroutines hold a mutex at once")
		before = locks
	})
	harness.Row("mutex", fmt.Sprintf(`{"workers":%d}`, workers), "ns", ns, "sync.Mutex")
}
