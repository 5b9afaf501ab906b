// C++20 coroutines whose send resumes a waiting neighbour at once, inside the call. The depth is at most N: a coroutine
// that is busy sending only gets its message.
#include <array>
#include <coroutine>
#include <exception>
#include <utility>

#include "ring.hpp"

namespace {

/// The place where a coroutine waits for its messages.
class place {
 public:
  void send(std::uint8_t message) {
    mail_.put(message);
    if (waiting_) {
      std::exchange(waiting_, nullptr).resume();
    }
  }

  auto receive() {
    struct awaiter {
      place& at;
      [[nodiscard]] bool await_ready() const { return !at.mail_.empty(); }
      void await_suspend(std::coroutine_handle<> who) const { at.waiting_ = who; }
      std::uint8_t await_resume() const { return at.mail_.take(); }
    };
    return awaiter{*this};
  }

 private:
  bench::ring::mailbox mail_;
  std::coroutine_handle<> waiting_;
};

/// Starts when it is awaited or started, and at its end resumes its awaiter by symmetric transfer.
class task {
 public:
  struct promise_type {
    std::coroutine_handle<> next = std::noop_coroutine();

    task get_return_object() { return task(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    auto final_suspend() noexcept {
      struct on_to_next {
        bool await_ready() noexcept { return false; }
        std::coroutine_handle<> await_suspend(std::coroutine_handle<promise_type> who) noexcept {
          return who.promise().next;
        }
        void await_resume() noexcept {}
      };
      return on_to_next{};
    }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };

  explicit task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  task(task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~task() {
    if (handle_) {
      handle_.destroy();
    }
  }

  void start() { handle_.resume(); }
  [[nodiscard]] bool done() const { return handle_.done(); }

  bool await_ready() { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> who) {
    handle_.promise().next = who;
    return handle_;
  }
  void await_resume() {}

 private:
  std::coroutine_handle<promise_type> handle_;
};

/// The function bench::ring::make_rounds, as a coroutine.
task make_rounds(const bench::ring::shape& what, std::uint64_t index, place& mine, place& right, std::uint64_t& hops) {
  std::uint64_t until_mine = index % what.n;
  for (std::uint64_t round = 0; round < what.rounds; ++round) {
    if (until_mine == 0) {
      right.send(1);
      const std::uint8_t made = co_await mine.receive();
      bench::check(made == what.n, "a message passes its whole cycle");
      hops += made;
      until_mine = what.n;
    } else {
      const std::uint8_t made = co_await mine.receive();
      right.send(static_cast<std::uint8_t>(made + 1));
    }
    --until_mine;
  }
}

/// As `make_rounds`, with `Extra` more bytes in the frame of a caller.
template <std::size_t Extra>
task make_rounds_below(const bench::ring::shape& what, std::uint64_t index, place& mine, place& right,
                       std::uint64_t& hops) {
  std::array<unsigned char, Extra> bytes;
  std::memset(bytes.data(), '#', bytes.size());
  asm volatile("" : : "r"(bytes.data()) : "memory");
  co_await make_rounds(what, index, mine, right, hops);
  asm volatile("" : : "r"(bytes.data()) : "memory");
}

class worker {
 public:
  worker(const bench::ring::shape& what, bench::ring::part mine) : places_(mine.last - mine.first) {
    tasks_.reserve(places_.size());
    for (std::uint64_t i = mine.first; i < mine.last; ++i) {
      place& here = places_[i - mine.first];
      place& right = places_[what.right_of(i) - mine.first];
      tasks_.push_back(what.extra == 0      ? make_rounds(what, i, here, right, hops_)
                       : what.extra == 1000 ? make_rounds_below<1000>(what, i, here, right, hops_)
                                            : make_rounds_below<10000>(what, i, here, right, hops_));
    }
  }

  std::uint64_t run() {
    for (task& each : tasks_) {
      each.start();
    }
    for (task& each : tasks_) {
      bench::check(each.done(), "every coroutine ends");
    }
    return hops_;
  }

 private:
  std::vector<place> places_;
  std::vector<task> tasks_;
  std::uint64_t hops_ = 0;
};

}  // namespace

int main() {
  if (const std::uint64_t extra = bench::input("D"); extra != 0 && extra != 1000 && extra != 10000) {
    bench::skip("its frames are of 0, 1000 or 10000 bytes more");
  }
  bench::ring::run<worker>("cpp20", 200, "resumed inline");
}
