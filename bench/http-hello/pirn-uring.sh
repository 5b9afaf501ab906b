#!/bin/sh
# As pirn.sh, with io_uring; usage: pirn-uring.sh PORT
# needs: target example_web_server
PIRN_ENGINE=uring exec "$PIRN_BENCH_BUILD/examples/web_server" --workers 1 --port "$1"
