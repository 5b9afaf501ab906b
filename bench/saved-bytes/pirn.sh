#!/bin/sh
# The fibers of threadring/pirn.
# needs: command valgrind
# needs: target bench_traced
exec python3 "$(dirname "$0")/../saved_bytes.py"
