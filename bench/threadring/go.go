// Goroutines on one core with unbuffered channels to the next.
package main

import (
	"fmt"
	"sync"

	"pirn/bench/harness"
)

func main() {
	processes := harness.Input("PROCESSES")
	harness.NeedMemory(processes * 2900)
	ring := make([]chan int, processes)
	for i := range ring {
		ring[i] = make(chan int)
	}
	finished := make(chan int)
	var all sync.WaitGroup
	all.Add(processes)
	for i := range ring {
		go func(place int, mine <-chan int, next chan<- int) {
			defer all.Done()
			for token := range mine {
				if token == 0 {
					finished <- place
				} else {
					next <- token - 1
				}
			}
			if place+1 < processes {
				close(next)
			}
		}(i, ring[i], ring[(i+1)%processes])
	}
	ns := harness.NsPerOperation(processes, func(hops int) {
		ring[0] <- hops - 1
		harness.Check(<-finished == (hops-1)%processes, "the token comes as far as its hops say")
	})
	close(ring[0])
	all.Wait()
	harness.Row("threadring", fmt.Sprintf(`{"processes":%d}`, processes), "ns", ns, "unbuffered channels")
}
