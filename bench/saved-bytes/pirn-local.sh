#!/bin/sh
# The fibers of threadring/pirn-local.
# needs: command valgrind
# needs: target bench_threadring_pirn-local
exec python3 "$(dirname "$0")/../saved_bytes.py" pirn-local
