// Package harness is harness.hpp for Go: the inputs, the timing loop, the checker and the output row.
package harness

import (
	"fmt"
	"math"
	"os"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Input returns an input of the workload, set by run.py for all languages alike.
func Input(name string) int {
	variable := "PIRN_BENCH_" + name
	value, err := strconv.Atoi(os.Getenv(variable))
	if err != nil {
		fmt.Fprintln(os.Stderr, variable+" is not set: start this program by bench/run.py")
		os.Exit(2)
	}
	return value
}

// Check ends the program with a failure unless the measured work was done.
func Check(done bool, what string) {
	if !done {
		fmt.Fprintln(os.Stderr, "check failed: "+what)
		os.Exit(1)
	}
}

// Skip ends the program because these inputs are beyond it or beyond the machine. run.py shows the reason and
// continues.
func Skip(reason string) {
	fmt.Fprintln(os.Stderr, reason)
	os.Exit(77)
}

// NeedMemory skips unless the given bytes of memory are available, with an eighth more to spare.
func NeedMemory(bytes int) {
	meminfo, err := os.ReadFile("/proc/meminfo")
	Check(err == nil, "/proc is mounted")
	kib := 0
	for _, line := range strings.Split(string(meminfo), "\n") {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "MemAvailable:" {
			kib, _ = strconv.Atoi(fields[1])
		}
	}
	if bytes/1024 > kib-kib/8 {
		Skip(fmt.Sprintf("needs about %d MiB of memory, and %d MiB are available", bytes>>20, kib>>10))
	}
}

// Row prints one result; params is a JSON object.
func Row(workload, params, unit string, value float64, note string) {
	fmt.Printf("{\"workload\":%q,\"impl\":\"go\",\"params\":%s,\"unit\":%q,\"value\":%.4f,\"note\":%q}\n",
		workload, params, unit, value, note)
}

// WithWorkers adds the number of workers to params if there is more than one.
func WithWorkers(params string, workers int) string {
	if workers == 1 {
		return params
	}
	return fmt.Sprintf(`%s,"workers":%d}`, strings.TrimSuffix(params, "}"), workers)
}

// NsPerOperation returns the median cost in nanoseconds of one of the n operations that run(n) does, as in harness.hpp.
func NsPerOperation(granule int, run func(n int)) float64 {
	return NsPerOperationBy(Now, granule, run)
}

// NsPerOperationBy is NsPerOperation by the given clock.
func NsPerOperationBy(now func() float64, granule int, run func(n int)) float64 {
	blockNs := float64(Input("BLOCK_MS")) * 1e6
	n := granule
	for {
		took := timed(now, run, n)
		if took >= blockNs {
			// A single time may be that of a machine that had to wake up first.
			took = math.Min(took, timed(now, run, n))
		}
		if took >= blockNs {
			break
		}
		factor := 10.0
		if took > 0 && blockNs/took*1.2 < factor {
			factor = blockNs / took * 1.2
		}
		n = (int(float64(n)*factor)/granule + 1) * granule
	}
	blocks := make([]float64, Input("BLOCKS"))
	for i := range blocks {
		blocks[i] = timed(now, run, n) / float64(n)
	}
	sort.Float64s(blocks)
	return blocks[len(blocks)/2]
}

func timed(now func() float64, run func(n int), n int) float64 {
	start := now()
	run(n)
	return now() - start
}

// ClockFor returns the clock for work on the given number of cores.
func ClockFor(cores int) func() float64 {
	if cores == 1 {
		return Now
	}
	return Wall
}

// Now returns the time that this process has spent on its core in nanoseconds, as in harness.hpp.
func Now() float64 {
	var usage syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage)
	Check(err == nil, "the kernel tells the time used")
	return float64(usage.Utime.Nano() + usage.Stime.Nano())
}

var start = time.Now()

// Wall returns the time on the clock in nanoseconds, for work on several cores.
func Wall() float64 {
	return float64(time.Since(start).Nanoseconds())
}

// MemoryBytes returns the memory that the process holds: resident pages and page tables.
func MemoryBytes() int {
	status, err := os.ReadFile("/proc/self/status")
	Check(err == nil, "/proc is mounted")
	kib := 0
	for _, line := range strings.Split(string(status), "\n") {
		fields := strings.Fields(line)
		if len(fields) >= 2 && (fields[0] == "VmRSS:" || fields[0] == "VmPTE:") {
			amount, _ := strconv.Atoi(fields[1])
			kib += amount
		}
	}
	return kib * 1024
}
