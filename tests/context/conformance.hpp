// Shared by the files of the conformance program: the result of a check, stacks, and one interface to all forms of a
// switch, so that every check is written once.
//
// The program includes little and uses no test framework, because it is compiled with dozens of combinations of
// options.
#pragma once

#include <cstddef>

#include "pirn/context/arch.hpp"
#if __SIZEOF_POINTER__ == 8
#define CONFORMANCE_HAS_FORK
#include "pirn/context/arch_fiber.hpp"
#endif
#include "pirn/context/expert/sanitizer.hpp"

#if defined(__clang__)
#define CONFORMANCE_KEEP __attribute__((noinline))
#else
#define CONFORMANCE_KEEP __attribute__((noipa))
#endif

namespace conformance {

namespace arch = pirn::arch;
using arch::word;

/// Prints the outcome of one check and remembers a failure. `shape` may be null.
void expect(bool passed, const char* shape, const char* what);

/// Whether the program runs under valgrind, which neither single-steps nor keeps up with a fast timer.
bool under_valgrind();

/// A value that no compiler knows.
template <class T>
CONFORMANCE_KEEP T opaque(T value) {
  volatile T hidden = value;
  return hidden;
}

/// Memory for one context, known to valgrind.
class stack {
 public:
  stack() noexcept { state_.create(bytes_, sizeof bytes_, "conformance"); }
  ~stack() { state_.destroy(); }
  stack(const stack&) = delete;
  stack& operator=(const stack&) = delete;
  void* top() noexcept { return bytes_ + sizeof bytes_; }
  bool holds(const void* address) const noexcept {
    return reinterpret_cast<word>(address) - reinterpret_cast<word>(bytes_) < sizeof bytes_;
  }

 private:
  alignas(64) char bytes_[256 * 1024];
  pirn::sanitizer_state state_;
};

/// Two parties, main and a context on `own`, that switch to one another by the form Shape.
template <class Shape>
// NOLINTNEXTLINE(bugprone-crtp-constructor-accessibility): for the three below only
class two_parties {
 public:
  using body = void (*)(Shape&);

  /// Makes the context and resumes it; the context calls `run`.
  void start(body run) noexcept {
    auto& shape = static_cast<Shape&>(*this);
    shape.make(run);
    shape.resume();
  }

  arch::context inside, outside;
  bool ended = false;
  stack own;

 protected:
  body run_ = nullptr;
};

/// Switches with `switch_to`.
class by_switch_to : public two_parties<by_switch_to> {
 public:
  static constexpr const char* name = "switch_to";
  static constexpr bool prepared = true;

  void make(body run) noexcept {
    run_ = run;
    inside = arch::prepare(own.top(), static_cast<arch::switch_entry>(&enter));
  }
  PIRN_ALWAYS_INLINE void resume() noexcept {
    word first = reinterpret_cast<word>(this), second = 0;
    arch::switch_to(outside, inside, first, second);
  }
  PIRN_ALWAYS_INLINE void yield() noexcept {
    word first = 0, second = 0;
    arch::switch_to(inside, outside, first, second);
  }

 private:
  static void enter(word first, word) {
    auto& self = *reinterpret_cast<by_switch_to*>(first);
    self.run_(self);
    self.ended = true;
    for (;;) {
      self.yield();
    }
  }
};

/// The common part of the forms below.
template <class Shape>
// NOLINTNEXTLINE(bugprone-crtp-constructor-accessibility): as above
class by_transfers : public two_parties<Shape> {
 public:
  PIRN_ALWAYS_INLINE void yield() noexcept {
    word values[arch::value_words];
    carry(values, nullptr);
    arch::transfer(this->outside, values);
  }

 protected:
  PIRN_ALWAYS_INLINE static void carry(word (&values)[arch::value_words], Shape* self) noexcept {
    values[0] = reinterpret_cast<word>(self);
    values[1] = values[2] = values[3] = 0;  // one by one: at -O0 an initializer is a call of memset
  }
  void execute(void* pc, void* sp, void* fp) {
    this->outside = {pc, sp, fp};
    this->run_(static_cast<Shape&>(*this));
    this->ended = true;
  }
};

/// Switches with `transfer`.
class by_transfer : public by_transfers<by_transfer> {
 public:
  static constexpr const char* name = "transfer";
  static constexpr bool prepared = true;

  void make(body run) noexcept {
    run_ = run;
    inside = arch::prepare(own.top(), static_cast<arch::transfer_entry>(&enter));
  }
  PIRN_ALWAYS_INLINE void resume() noexcept {
    word values[arch::value_words];
    carry(values, this);
    arch::transfer(inside, values);
  }

 private:
  PIRN_NONE static void enter(void* pc, void* sp, void* fp, word self_word, word, word, word) {
    auto& self = *reinterpret_cast<by_transfer*>(self_word);
    self.execute(pc, sp, fp);
    for (;;) {
      self.yield();
    }
  }
};

/// As `by_transfer`, but begins with `transfer_into` instead of `prepare` and ends with `transfer_last`: then `inside`
/// is tagged.
class by_transfer_into : public by_transfers<by_transfer_into> {
 public:
  static constexpr const char* name = "transfer_into";
  static constexpr bool prepared = false;

  void make(body run) noexcept {
    run_ = run;
    inside.pc = nullptr;
    ended = false;
  }
  PIRN_ALWAYS_INLINE void resume() noexcept {
    word values[arch::value_words];
    carry(values, this);
    if (inside.pc == nullptr) {
      arch::transfer_into<&enter>(own.top(), inside, values);
    } else {
      arch::transfer(inside, values);
    }
  }

 private:
  PIRN_NONE static void enter(void* pc, void* sp, void* fp, word self_word, word, word, word) {
    auto& self = *reinterpret_cast<by_transfer_into*>(self_word);
    self.execute(pc, sp, fp);
    word values[arch::value_words];
    carry(values, nullptr);
    arch::transfer_last(self.outside, values);
  }
};

#if defined(CONFORMANCE_HAS_FORK)
/// Begins with `fork_into`, switches with `switch_to_with_word` and ends with `fork_back`: then `inside` is tagged.
class by_fork : public two_parties<by_fork> {
 public:
  static constexpr const char* name = "fork";
  static constexpr bool prepared = false;

  void make(body run) noexcept {
    run_ = run;
    inside.pc = nullptr;
    ended = false;
    root_ = arch::fork_root(own.top());
  }
  PIRN_ALWAYS_INLINE void resume() noexcept {
    word first = reinterpret_cast<word>(this), second = 0, third = 0;
    if (inside.pc == nullptr) {
      arch::fork_into<&enter>(outside, root_, first, second);
    } else {
      arch::switch_to_with_word(outside, inside, first, second, third);
    }
  }
  PIRN_ALWAYS_INLINE void yield() noexcept {
    word first = 0, second = 0, third = 0;
    arch::switch_to_with_word(inside, outside, first, second, third);
  }

 private:
  PIRN_NONE static void enter(word first, word, void*) {
    auto& self = *reinterpret_cast<by_fork*>(first);
    self.run_(self);
    self.ended = true;
    self.inside = arch::ended_peer();
    arch::fork_back(self.outside, self.outside.sp, 0, 0);
  }
  void* root_ = nullptr;
};
#endif

// One group of checks per file.
void check_registers();
void check_frames();
void check_exceptions();
void check_pushed();
void check_unwinding();
/// Steps through all shapes one instruction at a time and unwinds at each.
void check_single_step();
/// Takes a backtrace from a signal handler ten thousand times a second while contexts switch.
void check_profiling(double seconds);
/// Ends in a context, at the function `conformance_stop`, where a debugger has set a breakpoint.
void stop_for_debugger();

}  // namespace conformance
