// Goroutines with buffered channels.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"pirn/bench/harness"
)

const many, places = 8, 64

func pingPong(n int) {
	there, back, last := make(chan int, 1), make(chan int, 1), make(chan int)
	go func() {
		number := 0
		for k := 0; k < n; k += 2 {
			there <- number + 1
			number = <-back
		}
		last <- number
	}()
	go func() {
		for k := 0; k < n; k += 2 {
			back <- <-there + 1
		}
	}()
	harness.Check(<-last == n, "every message is answered")
}

// Unit 0 sends to the others, or they send to it.
func fan(firstSends bool) func(n int) {
	return func(n int) {
		channel := make(chan int, places)
		var sum atomic.Int64
		var all sync.WaitGroup
		unit := func(sends bool, begin, end int) {
			mine := 0
			for number := begin; number < end; number++ {
				if sends {
					channel <- number
				} else {
					mine += <-channel
				}
			}
			sum.Add(int64(mine))
			all.Done()
		}
		all.Add(many + 1)
		go unit(firstSends, 0, n)
		for i := 0; i < many; i++ {
			go unit(!firstSends, i*(n/many), (i+1)*(n/many))
		}
		all.Wait()
		harness.Check(sum.Load() == int64(n)*int64(n-1)/2, "every message arrives once")
	}
}

func main() {
	shape, workers := os.Getenv("PIRN_BENCH_SHAPE"), harness.Input("WORKERS")
	runtime.GOMAXPROCS(workers)
	run := map[string]func(int){"ping-pong": pingPong, "fan-in": fan(false), "fan-out": fan(true)}[shape]
	ns := harness.NsPerOperationBy(harness.ClockFor(workers), many, run)
	harness.Row("chan", fmt.Sprintf(`{"shape":%q,"workers":%d}`, shape, workers), "ns", ns, "buffered channels")
}
