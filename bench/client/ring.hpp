// A queue with a fixed number of places.
#pragma once

#include <array>
#include <cstddef>

namespace bench {

template <typename T, std::size_t Places>
class ring {
  static_assert((Places & (Places - 1)) == 0, "a power of two");

 public:
  [[nodiscard]] bool empty() const { return first_ == last_; }
  [[nodiscard]] bool full() const { return last_ - first_ == Places; }
  [[nodiscard]] T& front() { return items_[first_ % Places]; }
  void push(const T& item) { items_[last_++ % Places] = item; }
  T pop() { return items_[first_++ % Places]; }

 private:
  std::array<T, Places> items_ = {};
  std::size_t first_ = 0;
  std::size_t last_ = 0;
};

}  // namespace bench
