// A request as a coroutine, which callback.cpp spreads over five functions.
#pragma once

#include "kv.hpp"

namespace bench {

/// `wait()` submits an operation to the storage, suspends until that is done and returns its error.
template <typename Server, typename Wait>
[[gnu::always_inline]] inline void serve(Server& of, std::string_view line, Wait&& wait) {
  const request asked = parse(line);
  switch (asked.what) {
    case kind::get:
      of.look_at(wait());
      of.answer_value(asked.key, of.read(asked.key));
      of.answer_end();
      return;
    case kind::set:
      of.look_at(wait());
      of.write(asked.key, asked.value);
      of.look_at(wait());
      of.answer_stored(asked.key);
      return;
    case kind::scan:
      for (unsigned i = 0; i < scan_length; ++i) {
        of.look_at(wait());
        const key_text key(key_number(asked.key) + i);
        of.answer_value(key, of.read(key));
      }
      of.answer_end();
      return;
  }
}

}  // namespace bench
