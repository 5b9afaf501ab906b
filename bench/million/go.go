// Goroutines that all wait for one channel to be closed.
package main

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"pirn/bench/harness"
)

func main() {
	fibers := harness.Input("MILLION")
	gate := make(chan struct{})
	var waiting int64
	var all sync.WaitGroup
	all.Add(fibers)
	before := harness.MemoryBytes()
	start := harness.Now()
	for i := 0; i < fibers; i++ {
		go func() {
			atomic.AddInt64(&waiting, 1)
			<-gate
			all.Done()
		}()
	}
	for atomic.LoadInt64(&waiting) < int64(fibers) {
		runtime.Gosched()
	}
	created := (harness.Now() - start) / float64(fibers)
	held := float64(harness.MemoryBytes()-before) / float64(fibers)
	close(gate)
	all.Wait()
	params := func(measure string) string { return fmt.Sprintf(`{"fibers":%d,"measure":%q}`, fibers, measure) }
	harness.Row("million", params("memory"), "B", held, "")
	harness.Row("million", params("create"), "ns", created, "")
}
