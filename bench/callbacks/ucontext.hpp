// Coroutines on makecontext and swapcontext, built like those of libcoroutine and similar libraries.
#pragma once

#include <ucontext.h>

#include "serve.hpp"
#include "stack_memory.hpp"

namespace bench {

/// A coroutine for requests, on a stack from the heap. It calls `serve_all(self)` each time it is begun.
class ucoroutine {
 public:
  ucoroutine(server<ucoroutine>& of, void (*serve_all)(ucoroutine&))
      : of(of), serve_all_(serve_all), stack_(stack_memory(input("STACK"))) {
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

  void begin(std::string_view with) {
    line = with;
    resume();
  }
  void complete(int error) {
    error_ = error;
    resume();
  }

  void serve_one() {
    serve(of, line, [this] {
      of.disk.submit(*this);
      swapcontext(&self_, &outside_);
      return error_;
    });
  }

  server<ucoroutine>& of;
  std::string_view line;
  ucoroutine* next = nullptr;  ///< for a list of idle coroutines

 private:
  void resume() {
    swapcontext(&outside_, &self_);
    if (ended_) {
      ended_ = false;
      keep_or_destroy(this);
    }
  }
  friend void keep_or_destroy(ucoroutine* ended);  // each program defines the treatment of an idle coroutine

  static void entry(unsigned high, unsigned low) {
    auto& self = *reinterpret_cast<ucoroutine*>(std::uintptr_t{high} << 32 | low);
    for (;;) {
      self.serve_all_(self);
      self.ended_ = true;
      swapcontext(&self.self_, &self.outside_);
    }
  }

  void (*serve_all_)(ucoroutine&);
  void* stack_;
  ucontext_t self_ = {};
  ucontext_t outside_ = {};
  int error_ = 0;
  bool ended_ = false;
};

}  // namespace bench
