#!/bin/sh
# fio, a thread with pread for each request under way
# needs: command fio
exec python3 -B "$(dirname "$0")/../fio.py" fio-psync
