// The part of platform.hpp for programs that are linked with pirn::sim: atomics, fences, locks and the state of
// threads, by the names of platform_plain.hpp. Each operation is a scheduling point while an exploration runs
// (pirn/sim/explore.hpp), and an ordinary one otherwise. Included by platform.hpp only.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace platform {

inline constexpr bool exploring = true;

namespace checked {

/// Whether the caller runs in an exploration, outside of the exploration's own code and of `quiet` scopes.
extern constinit bool watching asm("pirn_sim_watching_" PIRN_ABI_NAME);

// Each of these functions is a scheduling point: other threads may run before the operation, but then it happens at
// once. Functions that end in _done are not: they report the result of the operation before them.

/// How a report prints the value of a variable.
enum class value_kind : std::uint8_t { raw, truth, natural, integer, real, address };
struct value_type {
  std::uint8_t size = 0;  ///< in bytes, at most 8; 0 for a value that it cannot print
  value_kind kind = value_kind::raw;
};
template <class T>
[[nodiscard]] constexpr value_type type_of() noexcept {
  using enum value_kind;
  if constexpr (sizeof(T) > sizeof(std::uint64_t) || !std::is_trivially_copyable_v<T>) {
    return {};
  } else if constexpr (std::is_enum_v<T>) {
    return type_of<std::underlying_type_t<T>>();
  } else {
    return {sizeof(T), std::is_same_v<T, bool>       ? truth
                       : std::is_pointer_v<T>        ? address
                       : std::is_floating_point_v<T> ? real
                       : std::is_signed_v<T>         ? integer
                       : std::is_unsigned_v<T>       ? natural
                                                     : raw};
  }
}

/// Returns the value that a load sees.
[[nodiscard]] std::uint64_t load(const void* at, value_type type, std::memory_order order) noexcept;
/// Announces a store of `value`.
void store(const void* at, value_type type, std::uint64_t value, std::memory_order order) noexcept;
void read_modify_write(const void* at) noexcept;
void read_modify_write_done(const void* at, value_type type, std::uint64_t before, std::uint64_t after,
                            std::memory_order order) noexcept;
void compare_failed(const void* at, value_type type, std::uint64_t found, std::memory_order order) noexcept;
/// Records that a new object begins its life at this address.
void construct(const void* at) noexcept;

void lock(const void* at, std::atomic<bool>& held) noexcept;
[[nodiscard]] bool try_lock(const void* at, std::atomic<bool>& held) noexcept;
void unlock(const void* at, std::atomic<bool>& held) noexcept;

void fence(std::memory_order order) noexcept;
/// Where the exploration has symmetric fences: one side of a pair.
void symmetric_fence() noexcept;
/// Announces that the caller waits for another thread without blocking: the other threads run first.
void pause() noexcept;

/// Check a non-atomic access, which reads or writes the value at `value`. End the execution if it races.
void plain_read(const void* at, value_type type, const void* value) noexcept;
void plain_write(const void* at, value_type type, const void* value) noexcept;
/// Record the beginning and the end of an object at this address. They count as writes too, but are not scheduling
/// points.
void plain_begin(const void* at) noexcept;
void plain_end(const void* at) noexcept;

/// Returns the calling virtual thread's object of the kind that `key` stands for, or null.
[[nodiscard]] void* find_object(const void* key) noexcept;
void keep_object(const void* key, void* object, void (*destroy)(void*)) noexcept;

[[nodiscard]] bool spawn_may_fail() noexcept;
[[nodiscard]] bool spawn_fails() noexcept;
[[nodiscard]] bool stops_here() noexcept;
[[nodiscard]] bool preempts_here() noexcept;

/// Ends the execution at once, since it cannot continue. Outside of an execution, prints the message and aborts.
[[noreturn]] void fail(const char* what, const char* text) noexcept;

template <class T>
[[nodiscard]] inline std::uint64_t to_bits(const T& value) noexcept {
  static_assert(sizeof(T) <= sizeof(std::uint64_t) && std::is_trivially_copyable_v<T>);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}
template <class T>
[[nodiscard]] inline T from_bits(std::uint64_t bits) noexcept {
  alignas(T) unsigned char bytes[sizeof(T)];
  std::memcpy(bytes, &bits, sizeof bytes);
  return std::bit_cast<T>(bytes);
}

/// The common operations of `atomic` and `atomic_ref`. `Self` has `raw()`, the std:: object, and `at()`, the address.
template <class Self, class T>
class operations {
 public:
  [[nodiscard]] T load(std::memory_order order = std::memory_order_seq_cst) const noexcept {
    return watching ? from_bits<T>(checked::load(self().at(), type_of<T>(), order)) : self().raw().load(order);
  }
  void store(T value, std::memory_order order = std::memory_order_seq_cst) const noexcept {
    if (watching) {
      checked::store(self().at(), type_of<T>(), to_bits(value), order);
    }
    self().raw().store(value, order);
  }
  T exchange(T value, std::memory_order order = std::memory_order_seq_cst) const noexcept {
    return modify(order, [&](auto&& raw) { return raw.exchange(value, order); }, [&](T) { return value; });
  }
  bool compare_exchange_strong(T& expected, T value, std::memory_order success,
                               std::memory_order failure) const noexcept {
    if (!watching) {
      return self().raw().compare_exchange_strong(expected, value, success, failure);
    }
    read_modify_write(self().at());
    const bool done = self().raw().compare_exchange_strong(expected, value, success, failure);
    if (done) {
      read_modify_write_done(self().at(), type_of<T>(), to_bits(expected), to_bits(value), success);
    } else {
      compare_failed(self().at(), type_of<T>(), to_bits(expected), failure);
    }
    return done;
  }
  bool compare_exchange_strong(T& expected, T value,
                               std::memory_order order = std::memory_order_seq_cst) const noexcept {
    return compare_exchange_strong(expected, value, order, of_failure(order));
  }
  bool replace_read(T before, T value, std::memory_order order) const noexcept {
    return compare_exchange_strong(before, value, order, std::memory_order_relaxed);
  }
  template <class... Orders>
  bool compare_exchange_weak(T& expected, T value, Orders... orders) const noexcept {
    return compare_exchange_strong(expected, value, orders...);
  }
  template <class D>
  T fetch_add(D by, std::memory_order order = std::memory_order_seq_cst) const noexcept {
    return modify(
        order, [&](auto&& raw) { return raw.fetch_add(by, order); }, [&](T t) { return static_cast<T>(t + by); });
  }
  template <class D>
  T fetch_sub(D by, std::memory_order order = std::memory_order_seq_cst) const noexcept {
    return modify(
        order, [&](auto&& raw) { return raw.fetch_sub(by, order); }, [&](T t) { return static_cast<T>(t - by); });
  }
  T fetch_and(T with, std::memory_order order = std::memory_order_seq_cst) const noexcept {
    return modify(
        order, [&](auto&& raw) { return raw.fetch_and(with, order); }, [&](T t) { return static_cast<T>(t & with); });
  }
  T fetch_or(T with, std::memory_order order = std::memory_order_seq_cst) const noexcept {
    return modify(
        order, [&](auto&& raw) { return raw.fetch_or(with, order); }, [&](T t) { return static_cast<T>(t | with); });
  }
  T fetch_xor(T with, std::memory_order order = std::memory_order_seq_cst) const noexcept {
    return modify(
        order, [&](auto&& raw) { return raw.fetch_xor(with, order); }, [&](T t) { return static_cast<T>(t ^ with); });
  }
  // NOLINTNEXTLINE(google-explicit-constructor): as std::atomic's
  operator T() const noexcept { return load(); }
  template <class D>
  T operator+=(D by) const noexcept {
    return static_cast<T>(fetch_add(by) + by);
  }
  template <class D>
  T operator-=(D by) const noexcept {
    return static_cast<T>(fetch_sub(by) - by);
  }
  T operator&=(T with) const noexcept { return static_cast<T>(fetch_and(with) & with); }
  T operator|=(T with) const noexcept { return static_cast<T>(fetch_or(with) | with); }
  T operator^=(T with) const noexcept { return static_cast<T>(fetch_xor(with) ^ with); }
  T operator++() const noexcept { return *this += 1; }
  T operator--() const noexcept { return *this -= 1; }
  T operator++(int) const noexcept { return fetch_add(1); }
  T operator--(int) const noexcept { return fetch_sub(1); }
  // The kernel must not put a thread of an exploration to sleep, and polling would hide a forgotten notification.
  void wait(T, std::memory_order = std::memory_order_seq_cst) const = delete;
  void notify_one() const = delete;
  void notify_all() const = delete;

 private:
  friend Self;
  constexpr operations() noexcept = default;
  [[nodiscard]] const Self& self() const noexcept { return static_cast<const Self&>(*this); }
  static constexpr std::memory_order of_failure(std::memory_order order) noexcept {
    return order == std::memory_order_acq_rel   ? std::memory_order_acquire
           : order == std::memory_order_release ? std::memory_order_relaxed
                                                : order;
  }
  template <class Step, class After>
  T modify(std::memory_order order, Step&& step, After&& after) const noexcept {
    if (!watching) {
      return step(self().raw());
    }
    read_modify_write(self().at());
    const T before = step(self().raw());
    read_modify_write_done(self().at(), type_of<T>(), to_bits(before), to_bits(after(before)), order);
    return before;
  }
};

}  // namespace checked

/// Only for layouts: a thread of an exploration is never alone.
inline bool only_thread() noexcept { return false; }

/// As std::atomic, for types of up to 8 bytes.
template <class T>
class atomic : public std::atomic<T>, public checked::operations<atomic<T>, T> {
  using base = std::atomic<T>;
  using operations = checked::operations<atomic<T>, T>;
  friend operations;

 public:
  constexpr atomic() noexcept(std::is_nothrow_default_constructible_v<T>) : atomic(T()) {}
  // NOLINTNEXTLINE(google-explicit-constructor): as std::atomic's
  constexpr atomic(T value) noexcept : base(value) {
    if (!std::is_constant_evaluated() && checked::watching) {
      checked::construct(this);
    }
  }
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  // The base's functions of these names are not wanted.
  using operations::compare_exchange_strong;
  using operations::compare_exchange_weak;
  using operations::exchange;
  using operations::fetch_add;
  using operations::fetch_and;
  using operations::fetch_or;
  using operations::fetch_sub;
  using operations::fetch_xor;
  using operations::load;
  using operations::notify_all;
  using operations::notify_one;
  using operations::replace_read;
  using operations::store;
  using operations::wait;
  using operations::operator T;
  using operations::operator+=;
  using operations::operator-=;
  using operations::operator&=;
  using operations::operator|=;
  using operations::operator^=;
  using operations::operator++;
  using operations::operator--;
  // NOLINTNEXTLINE(misc-unconventional-assign-operator): as std::atomic's
  T operator=(T value) noexcept {
    store(value);
    return value;
  }

 private:
  [[nodiscard]] base& raw() const noexcept { return const_cast<atomic&>(*this); }
  [[nodiscard]] const void* at() const noexcept { return this; }
};

template <class T>
class atomic_ref : public checked::operations<atomic_ref<T>, T> {
  friend checked::operations<atomic_ref<T>, T>;

 public:
  explicit atomic_ref(T& value) noexcept : at_(&value) {}

 private:
  [[nodiscard]] std::atomic_ref<T> raw() const noexcept { return std::atomic_ref<T>(*at_); }
  [[nodiscard]] const void* at() const noexcept { return at_; }
  T* at_;
};

/// Return whether an exploration may refuse stacks, and whether it refuses this one.
[[nodiscard]] inline bool spawn_may_fail() noexcept { return checked::spawn_may_fail(); }
[[nodiscard]] inline bool spawn_fails() noexcept { return checked::spawn_fails(); }

/// Returns whether an exploration stops the caller, which is about to wait.
[[nodiscard]] inline bool stops_here() noexcept { return checked::stops_here(); }
/// Returns whether an exploration ends the time slice of the calling fiber, which is at a safe point.
[[nodiscard]] inline bool preempts_here() noexcept { return checked::preempts_here(); }

/// Ends an exploration as failed. Does nothing elsewhere.
inline void end_exploration(const char* what, const char* text) noexcept {
  if (checked::watching) {
    checked::fail(what, text);
  }
}

inline void atomic_thread_fence(std::memory_order order) noexcept {
  checked::fence(order);
  std::atomic_thread_fence(order);
}
inline void light_fence() noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
  checked::symmetric_fence();
}
inline void relax() noexcept { checked::pause(); }

class spinlock {
 public:
  void lock() noexcept {
    if (checked::watching) {
      checked::lock(this, held_);
    } else {
      held_.store(true, std::memory_order_relaxed);  // in a quiet scope no thread can hold it
    }
  }
  bool try_lock() noexcept {
    return checked::watching ? checked::try_lock(this, held_) : !held_.exchange(true, std::memory_order_relaxed);
  }
  void unlock() noexcept {
    if (checked::watching) {
      checked::unlock(this, held_);
    } else {
      held_.store(false, std::memory_order_relaxed);
    }
  }

 private:
  std::atomic<bool> held_{false};
};

/// Makes its scope one step: no other thread runs, and nothing is recorded. For code that is checked separately and
/// needs no other thread to make progress.
class quiet {
 public:
  quiet() noexcept : before_(checked::watching) { checked::watching = false; }
  ~quiet() { checked::watching = before_; }
  quiet(const quiet&) = delete;
  quiet& operator=(const quiet&) = delete;

 private:
  bool before_;
};

/// An object that exists once per thread. `T` is made at the thread's first access and destroyed with the thread.
template <class T>
class per_thread {
 public:
  [[nodiscard]] static T& here() {
    if (void* const found = checked::find_object(&key)) {
      return *static_cast<T*>(found);
    }
    auto* const made = new T();
    checked::keep_object(&key, made, [](void* object) { delete static_cast<T*>(object); });
    return *made;
  }

 private:
  static inline char key = 0;
};

}  // namespace platform
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
