// Goroutines and a WaitGroup for each pair.
package main

import (
	"fmt"
	"runtime"
	"sync"

	"pirn/bench/harness"
)

// As in sort.hpp.
const elements, cutOff, few = 200_000, 512, 24

func partition(all []uint32) int {
	a, b, c := all[0], all[len(all)/2], all[len(all)-1]
	pivot := max(min(a, b), min(max(a, b), c))
	for left, right := 0, len(all)-1; ; left, right = left+1, right-1 {
		for all[left] < pivot {
			left++
		}
		for pivot < all[right] {
			right--
		}
		if left >= right {
			return max(left, 1)
		}
		all[left], all[right] = all[right], all[left]
	}
}

func alone(all []uint32) {
	for len(all) > few {
		second := partition(all)
		alone(all[:second])
		all = all[second:]
	}
	for i, value := range all {
		hole := i
		for ; hole > 0 && value < all[hole-1]; hole-- {
			all[hole] = all[hole-1]
		}
		all[hole] = value
	}
}

func inUnits(all []uint32) {
	if len(all) <= cutOff {
		alone(all)
		return
	}
	second := partition(all)
	var other sync.WaitGroup
	other.Add(1)
	go func() {
		inUnits(all[:second])
		other.Done()
	}()
	inUnits(all[second:])
	other.Wait()
}

func main() {
	workers := harness.Input("WORKERS")
	runtime.GOMAXPROCS(workers)
	shuffled := make([]uint32, elements)
	random, sum := uint64(1), uint64(0)
	for i := range shuffled {
		random = random*6364136223846793005 + 1442695040888963407
		shuffled[i] = uint32(random >> 32)
		sum += uint64(shuffled[i])
	}
	numbers := make([]uint32, elements)
	ns := harness.NsPerOperationBy(harness.ClockFor(workers), elements, func(n int) {
		for done := 0; done < n; done += elements {
			copy(numbers, shuffled)
			inUnits(numbers)
			after, ordered := uint64(numbers[0]), true
			for i := 1; i < elements; i++ {
				after += uint64(numbers[i])
				ordered = ordered && numbers[i-1] <= numbers[i]
			}
			harness.Check(ordered && after == sum, "the same numbers are in order")
		}
	})
	harness.Row("sort", fmt.Sprintf(`{"workers":%d}`, workers), "ns", ns, "a goroutine for each partition above 512")
}
