// The aco workload, after libaco's own benchmark: many coroutines on one stack are created, resumed in turn and
// destroyed. Each only yields, over and over, with as many bytes of local variables as make libaco copy `image` bytes
// for it.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>

#include "../harness.hpp"

namespace bench::aco {

/// The inputs of one run.
struct setting {
  std::uint64_t coroutines = input("COROUTINES");
  std::uint64_t image = input("IMAGE");
  std::uint64_t resumes = input("RESUMES");
  std::string order = word_input("ORDER");    ///< of resumption: creation, random
  std::string fpenv = word_input("FPENV");    ///< control words: shared by all, or separate for each
  std::string malloc = word_input("MALLOC");  ///< glibc, tcmalloc: the library that LD_PRELOAD loads
  bool dirty = input("DIRTY") != 0;           ///< whether each line of an image changes at each turn; in libaco's, none
};

/// The number of resumes, counted by the coroutines.
inline std::uint64_t turns = 0;

/// The body of a coroutine with `Bytes` bytes of local variables, until `yield` returns false. Their address escapes,
/// so they stay in the frame. `Dirty` is `setting::dirty`.
template <std::size_t Bytes, bool Dirty, typename Yield>
__attribute__((always_inline)) inline void body(Yield yield) {
  if constexpr (Bytes != 0) {
    unsigned char bytes[Bytes];
    std::memset(bytes, 1, sizeof bytes);
    asm volatile("" : : "r"(bytes) : "memory");
    do {
      ++turns;
      if constexpr (Dirty) {
        for (std::size_t at = 0; at < Bytes; at += 64) {
          bytes[at] = static_cast<unsigned char>(turns);
        }
        asm volatile("" : : "r"(bytes) : "memory");
      }
    } while (yield());
  } else {
    do {
      ++turns;
    } while (yield());
  }
}

/// Calls `with(constant)` with the bytes of local variables that make an image of `image` bytes in libaco.
template <typename With>
auto with_bytes_for(std::uint64_t image, With with) {
  // libaco adds the return address of the function to its frame.
  constexpr auto sizes = std::to_array<std::size_t>({8, 24, 40, 56, 120, 136, 152, 248, 504, 1016, 2040, 4088, 7992});
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    decltype(with(std::integral_constant<std::size_t, 0>{})) made{};
    const bool known =
        image == 0 ||
        ((image == sizes[I] && (made = with(std::integral_constant<std::size_t, sizes[I] - 8>{}), true)) || ...);
    check(known, "an image of a size that libaco's benchmark has");
    return image == 0 ? with(std::integral_constant<std::size_t, 0>{}) : made;
  }(std::make_index_sequence<sizes.size()>{});
}

/// The largest amount of memory that the process has held so far, in MiB.
inline double peak_mib() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word && word != "VmHWM:") {
  }
  double kib = 0;
  status >> kib;
  return kib / 1024;
}

/// Runs one setting. `Kind(what)` makes the shared stack and room for all handles; then, for each index, come
/// `create(i)`, `resume(i)` and `destroy(i)`. `shuffle(random)` exchanges the indices in between.
template <typename Kind>
void rows(const char* impl, const char* note) {
  const setting what;
  Kind kind(what);
  const auto row = [&](const char* op, const char* unit, double value) {
    const std::string params = R"({"coroutines":)" + std::to_string(what.coroutines) + R"(,"image":)" +
                               std::to_string(what.image) + R"(,"op":")" + op + R"(","order":")" + what.order +
                               R"(","fpenv":")" + what.fpenv + R"(","malloc":")" + what.malloc + '"' +
                               (what.dirty ? R"(,"dirty":1})" : "}");
    bench::row("aco", impl, params, unit, value, note);
  };
  const auto timed = [](std::uint64_t operations, auto run) {
    const double start = now_ns();
    run();
    return (now_ns() - start) / static_cast<double>(operations);
  };
  const std::uint64_t n = what.coroutines;
  const double create = timed(n, [&] {
    for (std::uint64_t i = 0; i < n; ++i) {
      kind.create(i);
    }
  });
  std::vector<std::uint32_t> order;
  if (what.order == "random") {
    order.resize(n);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
  }
  const auto for_all = [&](auto run) {
    if (order.empty()) {
      for (std::uint64_t i = 0; i < n; ++i) {
        run(i);
      }
    } else {
      for (const std::uint32_t i : order) {
        run(i);
      }
    }
  };
  const auto resume_all = [&] { for_all([&](std::uint64_t i) { kind.resume(i); }); };
  resume_all();  // up to their first yield
  const std::uint64_t rounds = (what.resumes + n - 1) / n;
  const double resume = timed(rounds * n, [&] {
    for (std::uint64_t round = 0; round < rounds; ++round) {
      resume_all();
    }
  });
  check(turns == (rounds + 1) * n, "every resumed coroutine runs once");
  const double peak = peak_mib();
  const double destroy = timed(n, [&] { for_all([&](std::uint64_t i) { kind.destroy(i); }); });
  row("resume", "ns", resume);
  row("peak", "MiB", peak);
  row("create", "ns", create);
  row("destroy", "ns", destroy);
}

}  // namespace bench::aco
