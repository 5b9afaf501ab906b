#!/bin/sh
# The frame of a C++20 coroutine.
# needs: command valgrind
# needs: target bench_traced_cpp20
exec python3 "$(dirname "$0")/../saved_bytes.py" cpp20
