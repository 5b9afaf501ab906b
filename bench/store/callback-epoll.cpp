// The store by callbacks on a bare loop of epoll. A thread writes and syncs the log, since that blocks.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "../echo_listen.hpp"
#include "callbacks.hpp"

namespace {

class engine {
 public:
  explicit engine(int listener)
      : listener_(listener),
        log_(::open(bench::log_path().c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644)),
        epoll_(::epoll_create1(EPOLL_CLOEXEC)),
        logged_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        writer_([this] { write_logs(); }) {
    bench::check(log_ >= 0 && logged_ >= 0, "the log opens");
    watch(listener_, EPOLLIN);
    watch(logged_, EPOLLIN | EPOLLET);
  }

  [[noreturn]] void run() {
    for (;;) {
      ::epoll_event events[256];
      const int count = ::epoll_wait(epoll_, events, 256, -1);
      for (int i = 0; i < count; ++i) {
        const int ready = events[i].data.fd;
        if (ready == listener_) {
          const int made = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
          if (made >= 0) {
            watch(made, EPOLLIN | EPOLLOUT | EPOLLET);
          }
        } else if (ready == logged_) {
          std::uint64_t times = 0;
          if (::read(logged_, &times, sizeof times) > 0) {
            store_.logged();
          }
        } else {
          transfer(ready);
        }
      }
    }
  }

  void send(int socket, const std::string& answers) {
    rest_of(socket) = answers;
    send_rest(socket);
  }

  void log(const std::string& records) {
    {
      const std::lock_guard lock(mutex_);
      records_ = &records;
    }
    given_.notify_one();
  }

 private:
  void watch(int descriptor, std::uint32_t events) {
    ::epoll_event interest{};
    interest.events = events;
    interest.data.fd = descriptor;
    ::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &interest);
  }

  std::string_view& rest_of(int socket) {
    const auto index = static_cast<std::size_t>(socket);
    rests_.resize(std::max(rests_.size(), index + 1));
    return rests_[index];
  }

  void send_rest(int socket) {
    std::string_view& rest = rest_of(socket);
    while (!rest.empty()) {
      const ssize_t put = ::send(socket, rest.data(), rest.size(), MSG_NOSIGNAL);
      if (put < 0 && errno == EAGAIN) {
        return;
      }
      rest.remove_prefix(put > 0 ? static_cast<std::size_t>(put) : rest.size());
    }
    store_.sent(socket);
  }

  void transfer(int socket) {
    if (!rest_of(socket).empty()) {
      send_rest(socket);
    }
    char buffer[16384];
    for (;;) {
      const ssize_t got = ::recv(socket, buffer, sizeof buffer, 0);
      if (got < 0 && errno == EAGAIN) {
        return;
      }
      if (got <= 0) {
        store_.closed(socket);
        rest_of(socket) = {};
        ::close(socket);
        return;
      }
      store_.received(socket, {buffer, static_cast<std::size_t>(got)});
      if (static_cast<std::size_t>(got) < sizeof buffer) {
        return;
      }
    }
  }

  void write_logs() {
    for (;;) {
      std::unique_lock lock(mutex_);
      given_.wait(lock, [this] { return records_ != nullptr; });
      const std::string& records = *std::exchange(records_, nullptr);
      lock.unlock();
      bench::check(::write(log_, records.data(), records.size()) == static_cast<ssize_t>(records.size()) &&
                       ::fdatasync(log_) == 0,
                   "the log is written");
      const std::uint64_t one = 1;
      bench::check(::write(logged_, &one, sizeof one) == sizeof one, "the loop is told");
    }
  }

  const int listener_, log_, epoll_, logged_;
  std::vector<std::string_view> rests_;
  bench::callback_store<engine> store_{*this};
  std::mutex mutex_;
  std::condition_variable given_;
  const std::string* records_ = nullptr;
  std::thread writer_;
};

}  // namespace

int main(int, char** argv) { engine(bench::listen_at(argv[1])).run(); }
