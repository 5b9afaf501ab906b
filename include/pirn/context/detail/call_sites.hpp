// Reads in the tables of frames how an unwind passes through them. Needs the unwinder only, not the C++ runtime.
#pragma once

#include <unwind.h>

#include <cstddef>
#include <cstdint>

#include "pirn/detail/abi.hpp"

// For code that calls a function of a C program, which may be defined without a prototype: UBSan takes that for another
// type.
#if defined(__clang__)
#define PIRN_CALLS_C __attribute__((no_sanitize("function")))
#else
#define PIRN_CALLS_C
#endif

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Reads the table of call sites that GCC and clang write for C++ (the LSDA).
class call_sites {
 public:
  explicit call_sites(const void* table) noexcept : at_(static_cast<const unsigned char*>(table)) {}

  /// Whether an exception from `offset` bytes into the function ends the program: the table has no entry for it.
  [[nodiscard]] bool is_noexcept_at(std::uintptr_t offset) noexcept {
    constexpr unsigned char absent = 0xff;
    if (*at_++ != absent) {
      return false;  // landing pads elsewhere: only written by hand
    }
    if (*at_++ != absent) {
      uleb();
    }
    const unsigned char form = *at_++;
    const std::uintptr_t length = uleb();
    const unsigned char* const end = at_ + length;
    while (at_ < end) {
      const std::uintptr_t begin = number(form);
      const std::uintptr_t size = number(form);
      number(form);
      uleb();
      if (!known_) {
        return false;
      }
      if (offset < begin) {
        return true;
      }
      if (offset - begin < size) {
        return false;
      }
    }
    return true;
  }

 private:
  std::uintptr_t uleb() noexcept {
    std::uintptr_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const unsigned char byte = *at_++;
      if (shift < sizeof value * 8) {
        value |= static_cast<std::uintptr_t>(byte & 0x7f) << shift;
      }
      if ((byte & 0x80) == 0) {
        return value;
      }
    }
  }
  std::uintptr_t number(unsigned char form) noexcept {
    if (form == 1) {  // DW_EH_PE_uleb128; udata2, 4 and 8 are 2, 3 and 4
      return uleb();
    }
    known_ = known_ && form >= 2 && form <= 4;
    std::uint64_t value = 0;
    const std::size_t bytes = known_ ? std::size_t{1} << (form - 1) : 0;
    __builtin_memcpy(&value, at_, bytes);  // of little-endian machines
    at_ += bytes;
    return static_cast<std::uintptr_t>(value);
  }

  const unsigned char* at_;
  bool known_ = true;
};

/// Returns the innermost function on the caller's stack whose tables say that an unwind from its present place ends the
/// program. Returns 0 if the stack has no such function, and for clang's noexcept, which looks like a catch block in
/// the tables. Not noexcept, since it would find itself.
PIRN_COLD inline std::uintptr_t noexcept_caller() {
  std::uintptr_t found = 0;
  _Unwind_Backtrace(
      [](_Unwind_Context* frame, void* result) {
        int before = 0;
        const std::uintptr_t pc = _Unwind_GetIPInfo(frame, &before);
        const auto* table = reinterpret_cast<const void*>(_Unwind_GetLanguageSpecificData(frame));
        if (pc == 0 || table == nullptr) {
          return _URC_NO_REASON;
        }
        const std::uintptr_t function = _Unwind_GetRegionStart(frame);
        if (call_sites(table).is_noexcept_at(pc - (before != 0 ? 0 : 1) - function)) {
          *static_cast<std::uintptr_t*>(result) = function;
          return _URC_END_OF_STACK;
        }
        return _URC_NO_REASON;
      },
      &found);
  return found;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
