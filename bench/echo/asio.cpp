// Boost.Asio, one thread: a receive and a send of each connection, which call back.
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/write.hpp>
#include <memory>

#include "../echo_asio.hpp"

namespace {

namespace asio = boost::asio;

class session : public std::enable_shared_from_this<session> {
 public:
  explicit session(bench::asio_socket&& socket) : socket_(std::move(socket)) {}

  void receive() {
    socket_.async_read_some(asio::buffer(buffer_), [self = shared_from_this()](const auto& error, std::size_t got) {
      if (!error) {
        self->send(got);
      }
    });
  }

 private:
  void send(std::size_t bytes) {
    asio::async_write(socket_, asio::buffer(buffer_, bytes),
                      [self = shared_from_this()](const auto& error, std::size_t) {
                        if (!error) {
                          self->receive();
                        }
                      });
  }

  bench::asio_socket socket_;
  char buffer_[16384];
};

void accept(bench::asio_acceptor& from) {
  from.async_accept([&from](const auto& error, bench::asio_socket accepted) {
    if (!error) {
      std::make_shared<session>(std::move(accepted))->receive();
    }
    accept(from);
  });
}

}  // namespace

int main(int, char** argv) {
  asio::io_context context(1);
  bench::asio_acceptor acceptor = bench::asio_listen(context, argv[1]);
  accept(acceptor);
  context.run();
}
