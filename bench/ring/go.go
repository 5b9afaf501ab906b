// Goroutines with unbuffered channels to their right neighbours.
package main

import (
	"fmt"
	"runtime"
	"sync"

	"pirn/bench/harness"
)

var n, rounds int

func makeRounds(index int, left <-chan uint8, right chan<- uint8, hops *int) {
	untilMine := index % n
	for round := 0; round < rounds; round++ {
		if untilMine == 0 {
			right <- 1
			made := <-left
			harness.Check(int(made) == n, "a message passes its whole cycle")
			*hops += int(made)
			untilMine = n
		} else {
			right <- <-left + 1
		}
		untilMine--
	}
}

// D bytes more in the frame, which are written and stay there.
type extra interface{ [1000]byte | [10000]byte }

//go:noinline
func makeRoundsBelow[Extra extra](bytes *Extra, index int, left <-chan uint8, right chan<- uint8, hops *int) {
	makeRounds(index, left, right, hops)
	runtime.KeepAlive(bytes)
}

func with1000(index int, left <-chan uint8, right chan<- uint8, hops *int) {
	var bytes [1000]byte
	for i := range bytes {
		bytes[i] = '#'
	}
	makeRoundsBelow(&bytes, index, left, right, hops)
}

func with10000(index int, left <-chan uint8, right chan<- uint8, hops *int) {
	var bytes [10000]byte
	for i := range bytes {
		bytes[i] = '#'
	}
	makeRoundsBelow(&bytes, index, left, right, hops)
}

func main() {
	n, rounds = harness.Input("N"), harness.Input("M")
	coroutines, extra, workers := harness.Input("COROUTINES"), harness.Input("D"), harness.Input("P")
	body := map[int]func(int, <-chan uint8, chan<- uint8, *int){0: makeRounds, 1000: with1000, 10000: with10000}[extra]
	if body == nil {
		harness.Skip("its frames are of 0, 1000 or 10000 bytes more")
	}
	// A goroutine's stack is doubled until it is large enough.
	harness.NeedMemory(coroutines * map[int]int{0: 2900, 1000: 4900, 10000: 33500}[extra])
	runtime.GOMAXPROCS(workers)
	channels := make([]chan uint8, coroutines)
	for i := range channels {
		channels[i] = make(chan uint8)
	}
	hops := make([]int, coroutines)
	gate := make(chan struct{})
	var all sync.WaitGroup
	all.Add(coroutines)
	for i := range channels {
		right := i + 1
		if right%n == 0 {
			right -= n
		}
		go func() {
			<-gate
			body(i, channels[i], channels[right], &hops[i])
			all.Done()
		}()
	}
	now := harness.Now
	if workers > 1 {
		now = harness.Wall
	}
	start := now()
	close(gate)
	all.Wait()
	took := now() - start
	total := 0
	for _, each := range hops {
		total += each
	}
	harness.Check(total == coroutines*rounds, "every message of every round is sent")
	params := fmt.Sprintf(`{"N":%d,"coroutines":%d,"M":%d,"D":%d,"P":%d}`, n, coroutines, rounds, extra, workers)
	harness.Row("ring", params, "op/s", float64(total)/took*1e9, "unbuffered channels")
}
