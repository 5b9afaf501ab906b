#!/bin/sh
# nginx with one worker and an answer from memory; usage: nginx.sh PORT
# needs: command nginx
set -eu
PATH=$PATH:/usr/sbin:/sbin
folder=$PIRN_BENCH_FOLDER
cat >"$folder/nginx.conf" <<CONF
worker_processes 1;
daemon off;
master_process off;
error_log stderr;
pid $folder/pid;
events { worker_connections $((PIRN_BENCH_CONNECTIONS + 1000)); }
http {
  access_log off;
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
  client_body_temp_path $folder/body;
  proxy_temp_path $folder/proxy;
  fastcgi_temp_path $folder/fastcgi;
  uwsgi_temp_path $folder/uwsgi;
  scgi_temp_path $folder/scgi;
  default_type text/plain;
  server {
    listen 127.0.0.1:$1 backlog=4096;
    location = /hello { return 200 "Hello, world!\n"; }
  }
}
CONF
exec nginx -p "$folder" -c "$folder/nginx.conf"
