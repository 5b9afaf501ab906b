// Goroutines on one core. Each waits for its own timer, or for a channel that is closed to cancel all.
package main

import (
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"pirn/bench/harness"
)

// For each pending timer: all are asleep before the first is due.
const lead = 10 * time.Microsecond

// All sleep until some time within a second that begins `after`; if `cancel`, all are stopped instead. Returns the cost
// until all are asleep, and until all have woken up.
func sleepAll(pending int, after time.Duration, cancel bool) (insert, end float64) {
	var base time.Time
	var waiting, asleep, woken atomic.Int64
	var all sync.WaitGroup
	all.Add(pending)
	gate, stop := make(chan struct{}), make(chan struct{})
	for i := 0; i < pending; i++ {
		go func(i uint64) {
			waiting.Add(1)
			<-gate
			due := base.Add(time.Duration(i * 6364136223846793005 % 1_000_000_000))
			asleep.Add(1)
			timer := time.NewTimer(time.Until(due))
			select {
			case <-timer.C:
				if !cancel && !time.Now().Before(due) {
					woken.Add(1)
				}
			case <-stop:
				if timer.Stop() && cancel {
					woken.Add(1)
				}
			}
			all.Done()
		}(uint64(i))
	}
	for waiting.Load() < int64(pending) {
		runtime.Gosched()
	}
	runtime.GC() // excluded from the later times
	base = time.Now().Add(after)
	start := harness.Now()
	close(gate)
	for asleep.Load() < int64(pending) {
		runtime.Gosched()
	}
	inserted := harness.Now()
	if !time.Now().Before(base) {
		harness.Skip("the machine is too slow: some are due before all are asleep")
	}
	if cancel {
		close(stop)
	}
	all.Wait()
	ended := harness.Now()
	harness.Check(woken.Load() == int64(pending), "every sleep ends once and for the right reason")
	return (inserted - start) / float64(pending), (ended - inserted) / float64(pending)
}

func main() {
	pending := harness.Input("MILLION")
	row := func(op string, ns float64) {
		harness.Row("timers", fmt.Sprintf(`{"op":%q,"pending":%d}`, op, pending), "ns", ns,
			"goroutines that select between a timer and a channel, which is closed to cancel")
	}
	insert, cancel := sleepAll(pending, time.Hour, true)
	_, fire := sleepAll(pending, time.Duration(pending)*lead, false)
	row("insert", insert)
	row("cancel", cancel)
	row("fire", fire)
}
