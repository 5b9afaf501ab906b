// The memory workload: the memory that a suspended unit holds when a million or ten million of them wait at once.
#pragma once

#include "../harness.hpp"

namespace bench::memory {

inline std::uint64_t units() { return input("UNITS"); }

/// Measures from its construction on.
class meter {
 public:
  /// Prints the memory that each unit holds now. `state` is the history of the units before their suspension: `fresh`
  /// nothing, `deep` a call that went 8 KiB deep, `trimmed` such a call, after which its memory was given back. `of` is
  /// the number of units.
  void row(const char* impl, const char* state, std::uint64_t of, const char* note = nullptr) const {
    const double held = static_cast<double>(memory_bytes() - before_) / static_cast<double>(of);
    const std::string params = R"({"units":)" + std::to_string(units()) + R"(,"state":")" + state + "\"}";
    bench::row("memory", impl, params, "B", held, note);
  }

 private:
  std::uint64_t before_ = memory_bytes();
};

}  // namespace bench::memory
