#!/bin/sh
# The six registers of Boost.Context, and the frames below them.
# needs: command valgrind
# needs: target bench_traced_boost-context
exec python3 "$(dirname "$0")/../saved_bytes.py" boost-context
