// Goroutines that all wait for one channel to be closed.
package main

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"pirn/bench/harness"
)

// Uses 8 KiB of stack.
//
//go:noinline
func goDeep() int {
	var bytes [8192]byte
	for i := range bytes {
		bytes[i] = byte(i)
	}
	return strings.Count(string(bytes[:16]), "x")
}

func main() {
	units := harness.Input("UNITS")
	// A stack of 2 KiB grows to 16 KiB.
	harness.NeedMemory(units * (700 + 2048 + 16384))
	gates := []chan struct{}{make(chan struct{}), make(chan struct{})}
	var waiting, ended int64
	var all sync.WaitGroup
	all.Add(units)
	before := harness.MemoryBytes()
	for i := 0; i < units; i++ {
		go func() {
			atomic.AddInt64(&waiting, 1)
			<-gates[0]
			goDeep()
			atomic.AddInt64(&waiting, 1)
			<-gates[1]
			atomic.AddInt64(&ended, 1)
			all.Done()
		}()
	}
	for turn, state := range []string{"fresh", "deep"} {
		for atomic.LoadInt64(&waiting) < int64(units*(turn+1)) {
			runtime.Gosched()
		}
		held := float64(harness.MemoryBytes()-before) / float64(units)
		harness.Row("memory", fmt.Sprintf(`{"units":%d,"state":%q}`, units, state), "B", held, "")
		close(gates[turn])
	}
	all.Wait()
	harness.Check(ended == int64(units), "every goroutine ends")
}
