// Coroutines on makecontext and swapcontext, as libcoroutine and its like make them.
#pragma once

#include <ucontext.h>

#include "serve.hpp"

namespace bench {

/// A coroutine for requests: it runs one at a time, on a stack from malloc.
class ucoroutine {
 public:
  explicit ucoroutine(server<ucoroutine>& of) : of_(of), stack_(std::malloc(input("STACK"))) {
    check(stack_ != nullptr, "there is memory for a stack");
    getcontext(&self_);
    self_.uc_stack.ss_sp = stack_;
    self_.uc_stack.ss_size = input("STACK");
    self_.uc_link = nullptr;
    const auto address = reinterpret_cast<std::uintptr_t>(this);
    makecontext(&self_, reinterpret_cast<void (*)()>(entry), 2, static_cast<unsigned>(address >> 32),
                static_cast<unsigned>(address));
  }
  ucoroutine(const ucoroutine&) = delete;
  ucoroutine& operator=(const ucoroutine&) = delete;
  ~ucoroutine() { std::free(stack_); }

  void begin(std::string_view line) {
    line_ = line;
    resume();
  }
  void prefetch() const { __builtin_prefetch(this, 1); }
  void complete(int error) {
    error_ = error;
    resume();
  }
  ucoroutine* next = nullptr;  ///< for whoever keeps those that have served

 private:
  friend void keep_or_destroy(ucoroutine* served);  // each program says what happens to one that has served

  void resume() {
    swapcontext(&outside_, &self_);
    if (served_) {
      served_ = false;
      keep_or_destroy(this);
    }
  }
  void suspend() { swapcontext(&self_, &outside_); }

  static void entry(unsigned high, unsigned low) {
    auto& self = *reinterpret_cast<ucoroutine*>(std::uintptr_t{high} << 32 | low);
    for (;;) {
      serve(self.of_, self.line_, [&self] {
        self.of_.disk.submit(self);
        self.suspend();
        return self.error_;
      });
      self.served_ = true;
      self.suspend();
    }
  }

  server<ucoroutine>& of_;
  void* stack_;
  ucontext_t self_ = {};
  ucontext_t outside_ = {};
  std::string_view line_;
  int error_ = 0;
  bool served_ = false;
};

}  // namespace bench
