#!/bin/sh
# What spread/pirn executes and keeps.
# needs: command valgrind
# needs: command llvm-objdump-22
# needs: target bench_spread_pirn
exec python3 "$(dirname "$0")/../spread_counts.py" pirn
