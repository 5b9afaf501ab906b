// A request as a coroutine of pirn's.
#pragma once

#include "pirn/coro/coroutine.hpp"
#include "serve.hpp"

namespace bench {

/// What waits for the storage: a coroutine, which is resumed with the storage's error, and what it serves.
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
  session* next = nullptr;  ///< of those that have nothing to do
  coroutine body;
};

}  // namespace bench
