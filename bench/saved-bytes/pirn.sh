#!/bin/sh
# The fibers of threadring/pirn, and one that suspends in each way.
# needs: command valgrind
# needs: target bench_traced
# needs: target bench_traced_pirn
exec python3 "$(dirname "$0")/../saved_bytes.py"
