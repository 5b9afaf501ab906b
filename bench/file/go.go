// Goroutines that read with ReadAt, on one thread of the runtime; the work is that of file.hpp.
package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"runtime"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"pirn/bench/harness"
)

var (
	path   = os.Getenv("PIRN_BENCH_FILE")
	access = os.Getenv("PIRN_BENCH_ACCESS")
	depth  = harness.Input("DEPTH")
	size   = uint64(harness.Input("BYTES"))
	blocks = uint64(harness.Input("FILE_MB")) << 20 / size
	ends   = time.Now().Add(time.Duration(harness.Input("SECONDS")) * time.Second)
)

func block(reader, turn uint64) uint64 {
	switch access {
	case "sequential":
		return turn
	case "cold":
		return turn * 167 % blocks
	}
	mixed := reader<<40 + turn + 1
	mixed = (mixed ^ mixed>>30) * 0xbf58476d1ce4e5b9
	mixed = (mixed ^ mixed>>27) * 0x94d049bb133111eb
	return (mixed ^ mixed>>31) % blocks
}

func isOver(turn uint64) bool {
	switch {
	case access == "sequential":
		return turn == blocks
	case access == "cold":
		return turn == min(400, blocks)
	}
	return !time.Now().Before(ends)
}

// aligned returns memory as O_DIRECT needs it.
func aligned() []byte {
	memory := make([]byte, size+4096)
	skip := -uintptr(unsafe.Pointer(&memory[0])) & 4095
	return memory[skip : uint64(skip)+size]
}

func readBlocks(file *os.File, reader uint64) (took []float64) {
	into := aligned()
	for turn := uint64(0); !isOver(turn); turn++ {
		offset := block(reader, turn) * size
		began := time.Now()
		_, err := file.ReadAt(into, int64(offset))
		harness.Check(err == nil, "a block is read")
		took = append(took, float64(time.Since(began).Nanoseconds()))
		harness.Check(binary.LittleEndian.Uint64(into) == offset/4096, "it is the right block")
	}
	return took
}

func row(measure, unit string, value float64) {
	params := fmt.Sprintf(`{"access":%q,"depth":%d,"bytes":%d,"measure":%q}`, access, depth, size, measure)
	harness.Row("file", params, unit, value, "")
}

func main() {
	runtime.GOMAXPROCS(1)
	flags := os.O_RDONLY
	if access == "direct" {
		flags |= syscall.O_DIRECT
	}
	file, err := os.OpenFile(path, flags, 0)
	harness.Check(err == nil, "the file is opened")
	took := make([][]float64, depth)
	var all sync.WaitGroup
	var reading atomic.Int64
	began, cpu := harness.Wall(), harness.Now()
	for i := range took {
		all.Add(1)
		reading.Add(1)
		go func() {
			defer all.Done()
			took[i] = readBlocks(file, uint64(i))
			reading.Add(-1)
		}()
	}
	if access == "cold" {
		longest := time.Duration(0)
		for last := time.Now(); reading.Load() != 0; {
			runtime.Gosched()
			now := time.Now()
			longest, last = max(longest, now.Sub(last)), now
		}
		row("longest-wait", "ns", float64(longest.Nanoseconds()))
	}
	all.Wait()
	elapsed, used := harness.Wall()-began, harness.Now()-cpu
	var sorted []float64
	for _, each := range took {
		sorted = append(sorted, each...)
	}
	sort.Float64s(sorted)
	count := float64(len(sorted))
	harness.Check(count > 0, "something is read")
	row("per-cpu", "requests/s", count/used*1e9)
	row("throughput", "requests/s", count/elapsed*1e9)
	row("p50", "ns", sorted[int(0.5*(count-1))])
	row("p99", "ns", sorted[int(0.99*(count-1))])
	row("p99.9", "ns", sorted[int(0.999*(count-1))])
}
