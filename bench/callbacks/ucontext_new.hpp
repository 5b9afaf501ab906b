// swapcontext between coroutines that serve one request each, on a new stack.
#pragma once

#include "ucontext.hpp"

namespace bench {

inline void keep_or_destroy(ucoroutine* ended) { delete ended; }

inline void ucontext_new_main(const char* impl, const char* note) {
  const auto of = std::make_unique<server<ucoroutine>>();
  const auto begin = [&](std::string_view line) {
    (new ucoroutine(*of, [](ucoroutine& self) { self.serve_one(); }))->begin(line);
  };
  callbacks_rows(impl, *of, begin, note);
}

}  // namespace bench
