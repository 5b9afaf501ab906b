#!/bin/sh
# nginx, whose connections stay open after an answer. 424 bytes of each are there from the beginning and not in its row.
# needs: command nginx
exec "$(dirname "$0")/../http-hello/nginx.sh" "$1"
