// Variables that an exploration watches.
#pragma once

#include <utility>

#include "pirn/detail/platform.hpp"
#include "pirn/sim/explore.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim {

/// As std::atomic, for types of up to 8 bytes, with a scheduling point at each operation and the memory model that
/// `options::stale_reads` asks for.
template <class T>
using atomic = platform::atomic<T>;

/// As std::atomic_thread_fence, but visible to an exploration.
using platform::atomic_thread_fence;

/// A plain variable. Two accesses of which one is a write, and neither happens before the other, end the execution as a
/// data race; its beginning and its end are writes. An access is a scheduling point.
template <class T>
class var {
 public:
  var() : var(T()) {}
  // NOLINTNEXTLINE(google-explicit-constructor): takes the place of a T
  var(T value) : value_(std::move(value)) { platform::checked::plain_begin(&value_); }
  ~var() { platform::checked::plain_end(&value_); }
  var(const var&) = delete;
  var& operator=(const var&) = delete;

  /// Reads the value. The reference must not be used after another access.
  [[nodiscard]] const T& get() const noexcept {
    platform::checked::plain_read(&value_, platform::checked::type_of<T>(), &value_);
    return value_;
  }
  /// Reads the value, as `get`.
  // NOLINTNEXTLINE(google-explicit-constructor): takes the place of a T
  operator const T&() const noexcept { return get(); }
  /// Returns a reference for reading and changing; counts as a write.
  [[nodiscard]] T& edit() noexcept {
    platform::checked::plain_write(&value_, {}, nullptr);
    return value_;
  }
  /// Writes the value.
  void set(T value) {
    platform::checked::plain_write(&value_, platform::checked::type_of<T>(), &value);
    value_ = std::move(value);
  }
  /// Writes the value, as `set`.
  var& operator=(T value) {
    set(std::move(value));
    return *this;
  }
  /// Reads and then writes; another thread may run in between.
  template <class D>
  var& operator+=(const D& by) {
    T sum = get() + by;
    set(std::move(sum));
    return *this;
  }
  /// Reads, subtracts and writes, as two accesses.
  template <class D>
  var& operator-=(const D& by) {
    T difference = get() - by;
    set(std::move(difference));
    return *this;
  }
  /// Reads, adds one and writes, as two accesses.
  var& operator++() { return *this += 1; }
  /// Reads, subtracts one and writes, as two accesses.
  var& operator--() { return *this -= 1; }
  /// As the other, but returns the value before.
  T operator++(int) {
    T before = get();
    set(before + 1);
    return before;
  }
  /// As the other, but returns the value before.
  T operator--(int) {
    T before = get();
    set(before - 1);
    return before;
  }

 private:
  T value_;
};

}  // namespace sim
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
