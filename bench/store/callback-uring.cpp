// The store by callbacks on a bare ring of io_uring, which also writes and syncs the log.
#include <fcntl.h>

#include "../bare_ring.hpp"
#include "../echo_listen.hpp"
#include "callbacks.hpp"

namespace {

namespace bare = bench::bare;

enum job : std::uint8_t { accepts, receives, sends, writes, syncs };

class engine {
 public:
  explicit engine(int listener)
      : listener_(listener), log_(::open(bench::log_path().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)) {
    bench::check(log_ >= 0, "the log opens");
  }

  [[noreturn]] void run() {
    ring_.accept(accepts, listener_);
    ring_.run([this](const bare::completion& of) { end(of); });
  }

  void send(int socket, const std::string& answers) {
    rest_of(socket) = answers;
    ring_.send(sends, socket, answers.data(), static_cast<std::uint32_t>(answers.size()));
  }

  void log(const std::string& records) {
    bare::submission& written = ring_.next(writes, log_);
    written.opcode = bare::op_write;
    written.flags = bare::link_next;
    written.offset = ~std::uint64_t{0};
    written.address = reinterpret_cast<std::uintptr_t>(records.data());
    written.length = static_cast<std::uint32_t>(records.size());
    size_ = records.size();
    bare::submission& synced = ring_.next(syncs, log_);
    synced.opcode = bare::op_fsync;
    synced.operation_flags = bare::data_only;
  }

 private:
  std::string_view& rest_of(int socket) {
    const auto index = static_cast<std::size_t>(socket);
    rests_.resize(std::max(rests_.size(), index + 1));
    return rests_[index];
  }

  void end(const bare::completion& of) {
    const int descriptor = static_cast<int>(of.user_data & 0xffffffff);
    switch (of.user_data >> 32) {
      case accepts:
        if (of.result >= 0) {
          ring_.receive(receives, of.result);
        }
        if ((of.flags & bare::more_follow) == 0) {
          ring_.accept(accepts, listener_);
        }
        return;
      case receives:
        received(descriptor, of);
        return;
      case sends: {
        std::string_view& rest = rest_of(descriptor);
        rest.remove_prefix(of.result > 0 ? static_cast<std::size_t>(of.result) : rest.size());
        if (rest.empty()) {
          return store_.sent(descriptor);
        }
        return ring_.send(sends, descriptor, rest.data(), static_cast<std::uint32_t>(rest.size()));
      }
      case writes:
        bench::check(of.result == static_cast<std::int32_t>(size_), "the log is written");
        return;
      case syncs:
        bench::check(of.result == 0, "the log is on the disk");
        store_.logged();
    }
  }

  void received(int socket, const bare::completion& of) {
    const auto buffer = static_cast<std::uint16_t>(of.flags >> 16);
    if (of.result > 0) {
      store_.received(socket, {ring_.buffer(buffer), static_cast<std::size_t>(of.result)});
    }
    if ((of.flags & bare::has_buffer) != 0) {
      ring_.give_back(buffer);
    }
    if ((of.flags & bare::more_follow) != 0) {
      return;
    }
    if (of.result > 0 || of.result == -ENOBUFS) {
      ring_.receive(receives, socket);
    } else {
      store_.closed(socket);
      ::close(socket);
    }
  }

  const int listener_, log_;
  bare::ring ring_;
  std::vector<std::string_view> rests_;
  std::size_t size_ = 0;
  bench::callback_store<engine> store_{*this};
};

}  // namespace

int main(int, char** argv) { engine(bench::listen_at(argv[1])).run(); }
