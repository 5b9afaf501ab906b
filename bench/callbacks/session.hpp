// A request as a coroutine of pirn.
#pragma once

#include "pirn/coro/coroutine.hpp"
#include "serve.hpp"

namespace bench {

/// A waiter for the storage: a coroutine, which is resumed with the storage's error, and its request.
struct alignas(64) session {
  using coroutine = pirn::coroutine<void(int)>;

  [[gnu::always_inline]] void complete(int error) { body.resume(error); }

  [[gnu::always_inline]] void serve_one(server<session>& of, coroutine::yield& yield) {
    serve(of, line, [&of, &yield, this] {
      of.disk.submit(*this);
      return yield();
    });
  }

  std::string_view line;
  session* next = nullptr;  ///< in the list of idle sessions
  coroutine body;
};

}  // namespace bench
