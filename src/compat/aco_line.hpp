// The message that aco.h prints before it ends the process.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include <unistd.h>

namespace pirn_aco {

/// A line on stderr, made without printf: it may be printed on a share stack of one page.
class line {
 public:
  line() noexcept {}  // the text is not cleared: that may be a call, which the loader looks up on this stack
  line& operator<<(const char* text) noexcept {
    while (*text != '\0' && size_ < sizeof text_ - 1) {
      text_[size_++] = *text++;
    }
    return *this;
  }
  line& operator<<(std::size_t number) noexcept { return digits(number, 10); }
  line& operator<<(const void* address) noexcept {
    return (*this << "0x").digits(reinterpret_cast<std::uintptr_t>(address), 16);
  }
  void say() noexcept {
    text_[size_++] = '\n';
    for (std::size_t said = 0; said < size_;) {
      const ssize_t now = write(STDERR_FILENO, text_ + said, size_ - said);
      if (now <= 0 && errno != EINTR) {
        return;
      }
      said += now > 0 ? static_cast<std::size_t>(now) : 0;
    }
  }
  [[noreturn]] void die() noexcept {
    say();
    std::abort();
  }

 private:
  line& digits(std::size_t number, std::size_t base) noexcept {
    char text[24];
    char* at = text + sizeof text;
    *--at = '\0';
    do {
      *--at = "0123456789abcdef"[number % base];
      number /= base;
    } while (number != 0);
    return *this << at;
  }

  std::size_t size_ = 0;
  char text_[400];
};

}  // namespace pirn_aco
