// libuv: one loop, whose callbacks allocate nothing while a connection lives.
#include <signal.h>
#include <uv.h>

#include <cstddef>

#include "../echo_listen.hpp"

namespace {

/// A connection, whose one buffer is received into only when it has been sent.
struct connection {
  union {
    ::uv_stream_t stream;
    ::uv_tcp_t tcp;
    ::uv_pipe_t pipe;
  };
  ::uv_write_t sends;
  char buffer[16384];
};

/// Makes a stream for sockets of the listener's kind.
void init(::uv_loop_t* loop, connection& of, int family) {
  if (family == AF_UNIX) {
    ::uv_pipe_init(loop, &of.pipe, 0);
  } else {
    ::uv_tcp_init(loop, &of.tcp);
  }
  of.stream.data = &of;
}

connection& owner(const void* data) { return *static_cast<connection*>(const_cast<void*>(data)); }

void lend(::uv_handle_t* of, std::size_t, ::uv_buf_t* to) {
  *to = ::uv_buf_init(owner(of->data).buffer, sizeof connection::buffer);
}

void end(connection& over) {
  ::uv_close(reinterpret_cast<::uv_handle_t*>(&over.stream), [](::uv_handle_t* of) { delete &owner(of->data); });
}

void received(::uv_stream_t* from, ssize_t got, const ::uv_buf_t* into);

void sent(::uv_write_t* of, int status) {
  connection& to = owner(of->handle->data);
  if (status < 0) {
    end(to);
  } else {
    ::uv_read_start(&to.stream, lend, received);
  }
}

void received(::uv_stream_t* from, ssize_t got, const ::uv_buf_t* into) {
  connection& of = owner(from->data);
  if (got == 0) {
    return;
  }
  if (got < 0) {
    end(of);
    return;
  }
  ::uv_buf_t back = ::uv_buf_init(into->base, static_cast<unsigned>(got));
  const int put = ::uv_try_write(from, &back, 1);
  if (put == got) {
    return;
  }
  // The rest waits for room, and what comes meanwhile for the buffer.
  ::uv_read_stop(from);
  back.base += put > 0 ? put : 0;
  back.len -= static_cast<std::size_t>(put > 0 ? put : 0);
  ::uv_write(&of.sends, from, &back, 1, sent);
}

}  // namespace

int main(int, char** argv) {
  ::signal(SIGPIPE, SIG_IGN);
  ::uv_loop_t* const loop = ::uv_default_loop();
  static const int family = bench::address(argv[1]).family;
  static connection listener;
  init(loop, listener, family);
  const int socket = bench::listen_at(argv[1]);
  if (family == AF_UNIX) {
    ::uv_pipe_open(&listener.pipe, socket);
  } else {
    ::uv_tcp_open(&listener.tcp, socket);
  }
  ::uv_listen(&listener.stream, 4096, [](::uv_stream_t* from, int status) {
    if (status < 0) {
      return;
    }
    auto* const made = new connection;
    init(from->loop, *made, family);
    if (::uv_accept(from, &made->stream) == 0) {
      ::uv_read_start(&made->stream, lend, received);
    } else {
      end(*made);
    }
  });
  return ::uv_run(loop, UV_RUN_DEFAULT);
}
