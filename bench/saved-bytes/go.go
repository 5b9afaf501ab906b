// A goroutine that waits to receive from a channel: its frames from the first function to sp, which the runtime prints
// when a program ends by a panic. What of them is read later cannot be found, since valgrind does not run Go's runtime.
package main

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"pirn/bench/harness"
)

func body(from chan int) {
	for value := range from {
		harness.Check(value == 0, "only zeros are sent")
	}
}

func main() {
	if os.Getenv("GOTRACEBACK") == "system" {
		go body(make(chan int))
		time.Sleep(10 * time.Millisecond)
		panic("all goroutines are shown")
	}
	again := exec.Command(os.Args[0])
	again.Env = append(os.Environ(), "GOTRACEBACK=system")
	text, _ := again.CombinedOutput()
	low, high := uint64(1<<63), uint64(0)
	for _, goroutine := range strings.Split(string(text), "\n\n") {
		if !strings.Contains(goroutine, "main.body") {
			continue
		}
		for _, frame := range regexp.MustCompile(`fp=0x([0-9a-f]+) sp=0x([0-9a-f]+)`).FindAllStringSubmatch(goroutine, -1) {
			fp, _ := strconv.ParseUint(frame[1], 16, 64)
			sp, _ := strconv.ParseUint(frame[2], 16, 64)
			low, high = min(low, sp), max(high, fp)
		}
	}
	harness.Check(low < high, "the runtime prints the frames of the goroutine")
	harness.Row("saved-bytes", `{"point":"channel, receive","of":"image"}`, "B", float64(high-low),
		"the frames of a goroutine, whose stack has 2048 bytes at least")
}
