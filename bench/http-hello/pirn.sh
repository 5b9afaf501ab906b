#!/bin/sh
# The web server of examples/ with one worker; usage: pirn.sh PORT
# needs: target example_web_server
exec "$PIRN_BENCH_BUILD/examples/web_server" --workers 1 --port "$1"
