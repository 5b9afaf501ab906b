// Stacks for the tests of continuations, since this layer has none.
#pragma once

#include <cstddef>
#include <memory>
#include <system_error>
#include <utility>
#include <vector>

#include "pirn/context/continuation.hpp"

namespace support {

struct memory {
  void* limit_ = nullptr;
  void* top_ = nullptr;
  [[nodiscard]] void* limit() const noexcept { return limit_; }
  [[nodiscard]] void* top() const noexcept { return top_; }
};

enum class problem { none, exhausted };
inline std::error_code make_error_code(problem) { return std::make_error_code(std::errc::not_enough_memory); }

struct result {
  memory value;
  problem error = problem::none;
  explicit operator bool() const noexcept { return error == problem::none; }
};

/// Hands out stacks from the heap, and counts those in use.
class stacks {
 public:
  explicit stacks(std::size_t most = 1000) : most_(most) {}
  stacks(const stacks&) = delete;
  stacks& operator=(const stacks&) = delete;
  ~stacks() {
    for (const memory& each : idle_) {
      delete[] static_cast<std::byte*>(each.limit());
    }
  }

  result allocate(std::size_t size) {
    last_size = size;
    if (in_use == most_) {
      return {{}, problem::exhausted};
    }
    ++in_use;
    if (size == usual && !idle_.empty()) {
      const memory last = idle_.back();
      idle_.pop_back();
      return {last, problem::none};
    }
    auto* const bytes = new std::byte[size];
    return {{bytes, bytes + size}, problem::none};
  }
  void deallocate(const memory& value) {
    --in_use;
    if (static_cast<std::byte*>(value.top()) - static_cast<std::byte*>(value.limit()) == usual) {
      idle_.push_back(value);
    } else {
      delete[] static_cast<std::byte*>(value.limit());
    }
  }

  std::size_t in_use = 0;
  std::size_t last_size = 0;

 private:
  static constexpr std::size_t usual = std::size_t{64} << 10;
  std::size_t most_;
  std::vector<memory> idle_;
};

/// Appends its number to a list when it is destroyed.
class mark {
 public:
  mark(std::vector<int>& list, int number) : list_(&list), number_(number) {}
  mark(mark&& other) noexcept : list_(std::exchange(other.list_, nullptr)), number_(other.number_) {}
  mark& operator=(mark&&) = delete;
  ~mark() {
    if (list_ != nullptr) {
      list_->push_back(number_);
    }
  }

 private:
  std::vector<int>* list_;
  int number_;
};

}  // namespace support
