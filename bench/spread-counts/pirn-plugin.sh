#!/bin/sh
# What spread/pirn-plugin executes and keeps.
# needs: command valgrind
# needs: command llvm-objdump-22
# needs: target bench_spread_pirn-plugin
exec python3 "$(dirname "$0")/../spread_counts.py" pirn-plugin
