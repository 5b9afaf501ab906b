// Goroutines on one core; the wait is runtime.Gosched.
package main

import (
	"runtime"
	"sync"

	"pirn/bench/harness"
)

const step = 800

type sink struct {
	end   int
	bytes int
	turns int
}

var lastUsed *sink

// Whether a wait returns at once.
var ready bool

// offer stands for the non-blocking system call, opaque to its callers.
//
//go:noinline
func offer(to *sink, data, size int) int {
	taken := min(size, step)
	to.end = data + taken
	to.bytes += taken
	if lastUsed != to {
		to.turns++
	}
	lastUsed = to
	return taken
}

func waitForReady() {
	if !ready {
		runtime.Gosched()
	}
}

func sendSome(to *sink, data, size int) int {
	waitForReady()
	return offer(to, data, size)
}

func writeFully(to *sink, data, size int) int {
	sent := 0
	for sent < size {
		sent += sendSome(to, data+sent, size-sent)
	}
	return sent
}

func main() {
	runtime.GOMAXPROCS(1)
	senders := harness.Input("FIBERS")
	size := harness.Input("SEND_MB") * 1_000_000
	steps := (size + step - 1) / step
	measure := func(withoutWaits bool) float64 {
		ready = withoutWaits
		return harness.NsPerOperation(senders*steps, func(n int) {
			for done := 0; done < n; done += senders * steps {
				sinks := make([]sink, senders)
				sent := make([]int, senders)
				var all sync.WaitGroup
				all.Add(senders)
				for i := range sinks {
					go func(to *sink, result *int) {
						*result = writeFully(to, 0, size)
						all.Done()
					}(&sinks[i], &sent[i])
				}
				all.Wait()
				for i := range sinks {
					to := &sinks[i]
					harness.Check(sent[i] == size && to.end == size && to.bytes == size, "everything is sent once")
					harness.Check(ready || to.turns >= steps/2, "senders take turns")
				}
			}
		})
	}
	total := measure(false)
	application := measure(true)
	note := "GOMAXPROCS=1, runtime.Gosched"
	harness.Row("write_fully", `{"part":"total"}`, "ns", total, note)
	harness.Row("write_fully", `{"part":"application"}`, "ns", application, note)
	harness.Row("write_fully", `{"part":"scheduler"}`, "ns", total-application, note)
}
