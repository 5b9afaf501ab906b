#!/bin/sh
# The ucontext_t of a coroutine of swapcontext.
# needs: command valgrind
# needs: target bench_traced_ucontext
exec python3 "$(dirname "$0")/../saved_bytes.py" ucontext
