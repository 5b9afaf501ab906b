// A backtrace printed from a signal handler: no allocation, no lock, system calls only. Function names are read from
// the symbol tables of the files that are mapped, since dladdr takes the loader's lock and knows only exported symbols.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Text on its way to a file descriptor, in a fixed buffer.
class message {
 public:
  explicit message(int file) noexcept : file_(file) {}
  message& text(const char* string) noexcept;
  message& number(std::uintptr_t value) noexcept;
  message& address(std::uintptr_t value) noexcept;
  void flush() noexcept;

 private:
  void put(char c) noexcept;

  int file_;
  std::size_t used_ = 0;
  char buffer_[1024];
};

/// The place at which a signal has interrupted the code.
struct registers {
  std::uintptr_t pc;
  std::uintptr_t sp;
};
/// Returns the registers in `context`, the third argument of a signal handler.
registers registers_of(const void* context) noexcept;

/// The frames of the calling thread from the one that executes at `pc` outwards: the innermost and the outermost ones,
/// with those between them counted.
class backtrace {
 public:
  /// Walks the stack of the caller, skipping all frames inside of the one at `pc`.
  void collect(std::uintptr_t pc) noexcept;
  /// Finds the functions' names.
  void resolve() noexcept;
  /// Prints the frames from number `first` on, which becomes #0; `first` is less than `innermost`.
  void print(message& out, unsigned first = 0) const noexcept;
  /// Returns the number, as `print` counts, of the outermost frame whose function's name contains `part`; -1 if no
  /// frame has such a name.
  [[nodiscard]] int outermost_with(const char* part) const noexcept;
  /// Returns the frame with which the backtrace of a call of pirn begins: that of the called function, or of its caller
  /// where the function is inlined. Skips pirn's functions inside of it, except templates, which may contain the
  /// program's own code.
  [[nodiscard]] unsigned first_of_caller() const noexcept;

  struct frame {
    std::uintptr_t pc;      // where it executes
    std::uintptr_t lookup;  // pc, or a byte of the call before it
    std::uintptr_t file_offset;
    std::uintptr_t address;  // as the module's symbol table counts
    std::uintptr_t in_function;
    unsigned times;  // how often in a row
    char module[128];
    char function[160];
    void print(message& out) const noexcept;
  };

  /// Instead of a walk: `clear` removes all frames, and `add` adds one that executes at `pc` and is found in tables at
  /// `lookup`, unless it repeats the last one. The added frames can be read, up to `innermost` of them.
  void clear() noexcept { count_ = 0; }
  void add(std::uintptr_t pc, std::uintptr_t lookup) noexcept;
  [[nodiscard]] unsigned size() const noexcept { return count_; }
  [[nodiscard]] const frame& operator[](unsigned i) const noexcept { return frames_[i]; }
  static constexpr unsigned innermost = 16;

 private:
  static constexpr unsigned outermost = 8;
  void find_modules() noexcept;
  void place(std::uintptr_t begin, std::uintptr_t end, std::uintptr_t offset, const char* path) noexcept;
  void find_functions(const char* module) noexcept;
  [[nodiscard]] unsigned kept() const noexcept {
    return count_ < innermost + outermost ? count_ : innermost + outermost;
  }
  /// Of a kept frame: its number among all frames, and its slot.
  struct place_of_frame {
    unsigned number;
    unsigned slot;
  };
  [[nodiscard]] place_of_frame place_of(unsigned i) const noexcept;

  frame frames_[innermost + outermost] = {};  // after the first `innermost`, a ring
  unsigned count_ = 0;                        // of distinct frames
  friend struct backtrace_walk;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
