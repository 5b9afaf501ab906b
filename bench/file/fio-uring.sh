#!/bin/sh
# fio, which has all requests under way in one ring of io_uring
# needs: command fio
exec python3 -B "$(dirname "$0")/../fio.py" fio-uring
