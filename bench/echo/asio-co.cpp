// Boost.Asio, one thread: a C++20 coroutine for each connection.
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include "../echo_asio.hpp"

namespace {

namespace asio = boost::asio;
constexpr auto awaited = asio::as_tuple(asio::use_awaitable);

asio::awaitable<void> echo(bench::asio_socket socket) {
  char buffer[16384];
  for (;;) {
    const auto [failure, got] = co_await socket.async_read_some(asio::buffer(buffer), awaited);
    if (failure) {
      co_return;
    }
    const auto [error, sent] = co_await asio::async_write(socket, asio::buffer(buffer, got), awaited);
    if (error) {
      co_return;
    }
  }
}

asio::awaitable<void> serve(bench::asio_acceptor acceptor) {
  for (;;) {
    auto [error, socket] = co_await acceptor.async_accept(awaited);
    if (!error) {
      asio::co_spawn(acceptor.get_executor(), echo(std::move(socket)), asio::detached);
    }
  }
}

}  // namespace

int main(int, char** argv) {
  asio::io_context context(1);
  asio::co_spawn(context, serve(bench::asio_listen(context, argv[1])), asio::detached);
  context.run();
}
