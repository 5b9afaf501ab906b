// The end of a program that breaks a rule where no error can be returned and no exception can be thrown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// A part of a message: a text, a number or an address.
class message_part {
 public:
  message_part(const char* text) noexcept : text_(text) {}
  message_part(std::string_view text) noexcept : text_(text) {}
  message_part(std::uint64_t number) noexcept { write(number, 10); }
  message_part(const void* address) noexcept {
    write(reinterpret_cast<std::uintptr_t>(address), 16);
    *--first_ = 'x';
    *--first_ = '0';
    text_ = {first_, text_.size() + 2};
  }
  message_part(const message_part&) = delete;
  message_part& operator=(const message_part&) = delete;

  void print() const noexcept { std::fwrite(text_.data(), 1, text_.size(), stderr); }

 private:
  void write(std::uint64_t number, unsigned base) noexcept {
    do {
      *--first_ = "0123456789abcdef"[number % base];
    } while ((number /= base) != 0);
    text_ = {first_, static_cast<std::size_t>(digits_ + sizeof digits_ - first_)};
  }

  char digits_[22];
  char* first_ = digits_ + sizeof digits_;
  std::string_view text_;
};

/// Writes "pirn: ", the parts and a newline on standard error, and ends the process by `abort`. The message says which
/// rule was broken, and for which object. Does not use printf, which takes 8 KB of a stack that may be small.
template <class... Parts>
[[noreturn, gnu::cold]] PIRN_ENDS_PROCESS void fail_contract(const Parts&... parts) noexcept {
  std::fputs("pirn: ", stderr);
  (message_part(parts).print(), ...);
  std::fputs("\n", stderr);
  std::abort();
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
