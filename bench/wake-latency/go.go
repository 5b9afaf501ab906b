// Goroutines on two Ps and a channel.
package main

import (
	"fmt"
	"runtime"
	"sort"
	"sync/atomic"

	"pirn/bench/harness"
)

// As in wake_latency.hpp.
const restNs = 60_000

func main() {
	runtime.GOMAXPROCS(2)
	count := 1000 * harness.Input("BLOCKS")
	took := make([]float64, count)
	var runs atomic.Int64
	woken := make(chan float64, 1)
	go func() {
		for i := range took {
			at := <-woken
			took[i] = harness.Wall() - at
			runs.Add(1)
		}
	}()
	for i := 0; i < count; i++ {
		for rested := harness.Wall() + restNs; harness.Wall() < rested; {
		}
		woken <- harness.Wall()
		for runs.Load() == int64(i) {
		}
	}
	harness.Check(runs.Load() == int64(count), "every wake-up is answered once")
	sort.Float64s(took)
	for _, each := range []struct {
		name  string
		share float64
	}{{"50", 0.5}, {"99", 0.99}, {"99.9", 0.999}} {
		harness.Row("wake-latency", fmt.Sprintf(`{"percentile":%s}`, each.name), "ns", took[int(each.share*float64(count))],
			"a channel between goroutines")
	}
}
