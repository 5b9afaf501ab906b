#!/bin/sh
# The instructions that spread/pirn executes, and the bytes that it keeps.
# needs: command valgrind
# needs: command llvm-objdump-22
# needs: target bench_spread_pirn
exec python3 "$(dirname "$0")/../spread_counts.py" pirn
