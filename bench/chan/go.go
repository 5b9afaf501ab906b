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

const many = 8

var room = harness.Input("ROOM")

func pingPong(n int) {
	there, back, last := make(chan int, room), make(chan int, room), make(chan int)
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
		channel := make(chan int, room)
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

// One unit sends to another one.
func stream(n int) {
	channel, sum := make(chan int, room), 0
	go func() {
		for number := 0; number < n; number++ {
			channel <- number
		}
	}()
	for k := 0; k < n; k++ {
		sum += <-channel
	}
	harness.Check(sum == n*(n-1)/2, "every message arrives once")
}

func main() {
	shape, workers := os.Getenv("PIRN_BENCH_SHAPE"), harness.Input("WORKERS")
	runtime.GOMAXPROCS(workers)
	run := map[string]func(int){"ping-pong": pingPong, "fan-in": fan(false), "fan-out": fan(true), "stream": stream}[shape]
	ns := harness.NsPerOperationBy(harness.ClockFor(workers), many, run)
	params := fmt.Sprintf(`"shape":%q,"workers":%d`, shape, workers)
	if usual := map[string]int{"ping-pong": 1, "fan-in": 64, "fan-out": 64}; shape == "stream" || room != usual[shape] {
		params += fmt.Sprintf(`,"room":%d`, room)
	}
	harness.Row("chan", "{"+params+"}", "ns", ns, "channels")
}
