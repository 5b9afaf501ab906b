// A goroutine for each child, as in the original.
package main

import (
	"fmt"
	"runtime"

	"pirn/bench/harness"
)

const leaves = 1000000

func skynet(sums chan<- int, first, leaves int) {
	if leaves == 1 {
		sums <- first
		return
	}
	own := make(chan int, 10)
	for i := 0; i < 10; i++ {
		go skynet(own, first+i*(leaves/10), leaves/10)
	}
	sum := 0
	for i := 0; i < 10; i++ {
		sum += <-own
	}
	sums <- sum
}

func main() {
	workers := harness.Input("WORKERS")
	runtime.GOMAXPROCS(workers)
	ns := harness.NsPerOperationBy(harness.ClockFor(workers), leaves, func(n int) {
		for done := 0; done < n; done += leaves {
			sum := make(chan int, 1)
			skynet(sum, 0, leaves)
			harness.Check(<-sum == leaves*(leaves-1)/2, "the sum of all numbers")
		}
	})
	harness.Row("skynet", fmt.Sprintf(`{"workers":%d}`, workers), "ns", ns, "goroutines and channels")
}
