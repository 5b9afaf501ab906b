// Waits on a socket that a C library owns. Here the library is a few lines with the interface of libpq.
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "pirn/fiber/runtime.hpp"
#include "pirn/io/descriptor.hpp"

namespace database {

struct connection {
  int socket;
  int server;
};

connection* connect() {
  int ends[2];
  return ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0 ? new connection{ends[0], ends[1]} : nullptr;
}
int socket_of(const connection* c) { return c->socket; }  // as PQsocket
void consume(connection*) {}                              // as PQconsumeInput
bool is_busy(connection* c) {                             // as PQisBusy
  char byte;
  return ::recv(c->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0;
}
void answer(connection* c) { static_cast<void>(::write(c->server, "1", 1)); }  // what the server does
void finish(connection* c) {
  ::close(c->socket);
  ::close(c->server);
  delete c;
}

}  // namespace database

namespace {

/// Suspends the fiber until the answer has come; the library never blocks the worker.
pirn::result<> await_answer(database::connection* c, pirn::time_point deadline) {
  auto lent = pirn::descriptor::borrow(database::socket_of(c));
  if (!lent) {
    return pirn::fail(lent.error());
  }
  while (database::is_busy(c)) {
    if (const auto ready = lent->wait(pirn::io_direction::read, deadline); !ready) {
      return ready;
    }
    database::consume(c);
  }
  return {};
}

}  // namespace

int main() {
  pirn::runtime runtime({.workers = 1});
  return runtime.run([] {
    database::connection* const c = database::connect();
    pirn::fiber server = pirn::spawn([c] {
      static_cast<void>(pirn::this_fiber::sleep_for(std::chrono::milliseconds(5)));
      database::answer(c);
    });
    const auto answered = await_answer(c, std::chrono::steady_clock::now() + std::chrono::seconds(10));
    std::puts(answered ? "answered" : answered.error().message().c_str());
    server.join();
    database::finish(c);
    return answered ? EXIT_SUCCESS : EXIT_FAILURE;
  });
}
