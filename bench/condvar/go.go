// Goroutines, sync.Mutex and sync.Cond.
package main

import (
	"fmt"
	"runtime"
	"sync"

	"pirn/bench/harness"
)

const pairs, places = 4, 8

type buffer struct {
	guard                sync.Mutex
	hasRoom, hasElements *sync.Cond
	elements             [places]int
	first, size          int
}

func (b *buffer) put(element int) {
	b.guard.Lock()
	for b.size == places {
		b.hasRoom.Wait()
	}
	b.elements[(b.first+b.size)%places] = element
	b.size++
	b.guard.Unlock()
	b.hasElements.Signal()
}

func (b *buffer) take() int {
	b.guard.Lock()
	for b.size == 0 {
		b.hasElements.Wait()
	}
	element := b.elements[b.first%places]
	b.first++
	b.size--
	b.guard.Unlock()
	b.hasRoom.Signal()
	return element
}

func main() {
	workers := harness.Input("WORKERS")
	runtime.GOMAXPROCS(workers)
	ns := harness.NsPerOperationBy(harness.ClockFor(workers), pairs*5000, func(n int) {
		b := &buffer{}
		b.hasRoom, b.hasElements = sync.NewCond(&b.guard), sync.NewCond(&b.guard)
		share := n / pairs
		sums := make(chan int, pairs)
		for i := 0; i < pairs; i++ {
			go func(first int) {
				for element := first; element < first+share; element++ {
					b.put(element)
				}
			}(i * share)
			go func() {
				sum := 0
				for k := 0; k < share; k++ {
					sum += b.take()
				}
				sums <- sum
			}()
		}
		sum := 0
		for i := 0; i < pairs; i++ {
			sum += <-sums
		}
		harness.Check(sum == n*(n-1)/2, "every element arrives once")
	})
	harness.Row("condvar", fmt.Sprintf(`{"workers":%d}`, workers), "ns", ns, "sync.Cond")
}
