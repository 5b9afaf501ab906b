// What the workload `file` is: readers, `depth` of them at once, each of which reads one block after the other.
// `cached` and `direct` (O_DIRECT) are random blocks for some seconds. `sequential` is the file once from its beginning
// to its end, `cold` 400 of its blocks out of order; the page cache has none of these before.
#pragma once

#include <stdlib.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "../harness.hpp"
#include "../request_log.hpp"

namespace bench {

struct file_work {
  std::string path = word_input("FILE"), access = word_input("ACCESS");
  std::uint64_t depth = input("DEPTH"), bytes = input("BYTES");
  std::uint64_t blocks = (input("FILE_MB") << 20) / bytes;
  bool direct = access == "direct";
  bool timed = direct || access == "cached";
  std::int64_t ends = read_clock() + static_cast<std::int64_t>(input("SECONDS") * 1'000'000'000);

  /// Returns the number of the block that a reader reads as its `turn`th.
  [[nodiscard]] std::uint64_t block(std::uint64_t reader, std::uint64_t turn) const {
    if (access == "sequential") {
      return turn;
    }
    if (access == "cold") {
      return turn * 167 % blocks;
    }
    std::uint64_t mixed = (reader << 40) + turn + 1;  // splitmix64
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return (mixed ^ mixed >> 31) % blocks;
  }
  [[nodiscard]] bool is_over(std::uint64_t turn) const {
    return timed ? read_clock() >= ends : turn == (access == "cold" ? std::min<std::uint64_t>(400, blocks) : blocks);
  }
};

/// Reads as one of the readers, by read(into, size, offset), which returns whether all bytes were read; returns how
/// long each block took.
template <class Read>
std::vector<std::int64_t> read_blocks(const file_work& work, std::uint64_t reader, Read read) {
  const std::unique_ptr<void, decltype(&::free)> memory(::aligned_alloc(4096, work.bytes), ::free);
  std::vector<std::int64_t> took;
  for (std::uint64_t turn = 0; !work.is_over(turn); ++turn) {
    const std::uint64_t offset = work.block(reader, turn) * work.bytes;
    const std::int64_t began = read_clock();
    check(read(memory.get(), work.bytes, offset), "a block is read");
    took.push_back(read_clock() - began);
    std::uint64_t number = 0;
    std::memcpy(&number, memory.get(), sizeof number);
    check(number == offset / 4096, "it is the right block");
  }
  return took;
}

inline void file_row(const char* impl, const file_work& work, const char* measure, const char* unit, double value) {
  row("file", impl,
      R"({"access":")" + work.access + R"(","depth":)" + std::to_string(work.depth) + R"(,"bytes":)" +
          std::to_string(work.bytes) + R"(,"measure":")" + measure + "\"}",
      unit, value);
}

inline void file_rows(const char* impl, const file_work& work, request_log& log) {
  log.end();
  check(!log.empty(), "something is read");
  log.print_each(
      [&](const char* measure, const char* unit, double value) { file_row(impl, work, measure, unit, value); });
}

}  // namespace bench
