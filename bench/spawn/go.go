// Goroutines on one thread or two, joined by a WaitGroup.
package main

import (
	"runtime"
	"sync"
	"sync/atomic"

	"pirn/bench/harness"
)

var ran int64
var all sync.WaitGroup

func body() {
	atomic.AddInt64(&ran, 1)
	all.Done()
}

func main() {
	batch := harness.Input("BATCH")
	workers := harness.Input("WORKERS")
	runtime.GOMAXPROCS(workers)
	ns := harness.NsPerOperationBy(harness.ClockFor(workers), batch, func(n int) {
		before := atomic.LoadInt64(&ran)
		for done := 0; done < n; done += batch {
			all.Add(batch)
			for i := 0; i < batch; i++ {
				go body()
			}
			all.Wait()
		}
		harness.Check(atomic.LoadInt64(&ran)-before == int64(n), "every goroutine of a batch runs once")
	})
	harness.Row("spawn", harness.WithWorkers(`{"mode":"batch"}`, workers), "ns", ns, "joined by a WaitGroup")
	ns = harness.NsPerOperationBy(harness.ClockFor(workers), 10, func(n int) {
		before := atomic.LoadInt64(&ran)
		for i := 0; i < n; i++ {
			all.Add(1)
			go body()
			all.Wait()
		}
		harness.Check(atomic.LoadInt64(&ran)-before == int64(n), "every single goroutine runs once")
	})
	harness.Row("spawn", harness.WithWorkers(`{"mode":"single"}`, workers), "ns", ns, "joined by a WaitGroup")
}
