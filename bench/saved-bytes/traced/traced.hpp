// How the traced programs report to saved_bytes.py, on standard error and by stores that it finds in the trace.
#pragma once

#include <cstdio>
#include <initializer_list>

#include "../../harness.hpp"

namespace bench {

inline volatile char points_begun[256];
inline unsigned points = 0;

/// From here on the switches of the fiber that was told of belong to this point.
inline void begin_point(const char* name) {
  std::fprintf(stderr, "point %p %s\n", const_cast<char*>(&points_begun[points]), name);
  points_begun[points++] = 1;
}

struct range {
  const void* low;
  const void* high;
};

/// At the moment of the call what has this memory is suspended at the point with this name.
inline void suspended(const char* name, std::initializer_list<range> memory) {
  std::fprintf(stderr, "suspended %p", const_cast<char*>(&points_begun[points]));
  for (const range& each : memory) {
    std::fprintf(stderr, " %p %p", each.low, each.high);
  }
  std::fprintf(stderr, " %s\n", name);
  points_begun[points++] = 1;
}

/// Prints how many bytes are kept of what is suspended there, used or not: a frame, or the stack from its top to sp.
inline void image_row(const char* impl, const char* point, std::size_t bytes, const char* note = nullptr) {
  row("saved-bytes", impl, std::string(R"({"point":")") + point + R"(","of":"image"})", "B", static_cast<double>(bytes),
      note);
}

}  // namespace bench
