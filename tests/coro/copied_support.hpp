// A copied_coroutine with the constructors of coroutine, on a separate copy_stack where a second coroutine takes turns
// with it: each resume copies it in, and the next one copies it out.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "pirn/coro/detail/stack_source.hpp"
#include "pirn/coro/expert/copied_coroutine.hpp"
#include "pirn/stack/stack.hpp"

namespace {

template <class Signature>
class coroutine;

template <class Out, class... In>
class coroutine<Out(In...)> {
 public:
  using copied = pirn::copied_coroutine<Out(In...)>;
  using yield = typename copied::yield;

  coroutine() noexcept = default;
  template <class Body>
    requires pirn::detail::coroutine_body<Body, yield&, In...>
  explicit coroutine(Body&& body)
      : home_(std::make_unique<home>(std::size_t{1} << 18)), one_(home_->on, std::forward<Body>(body)) {}
  template <class Allocator, class Body>
    requires pirn::detail::coroutine_body<Body, yield&, In...>
  coroutine(Allocator& allocator, std::size_t size, Body&& body)
      : home_(std::make_unique<home_on_source>(source(allocator, size, "test"))),
        one_(home_->on, std::forward<Body>(body)) {}
  template <pirn::detail::gives_stacks Allocator, class Body>
    requires pirn::detail::coroutine_body<Body, yield&, In...>
  coroutine(Allocator& allocator, Body&& body)
      : coroutine(allocator, pirn::detail::usual_size<Allocator>, std::forward<Body>(body)) {}
  template <class Body>
  coroutine(const pirn::stack& memory, Body&& body)
      : home_(std::make_unique<home>(memory)), one_(home_->on, std::forward<Body>(body)) {}

  Out resume(In... in) {
    if (home_ != nullptr) {
      home_->disturb();
    }
    return one_.resume(std::forward<In>(in)...);
  }
  [[nodiscard]] bool done() const noexcept { return one_.done(); }
  void reset() {
    home_->disturb();
    one_.reset();
  }
  template <class Body>
  void reset(Body&& body) {
    home_->disturb();
    one_.reset(std::forward<Body>(body));
  }

 private:
  struct home {
    template <class Where>
    explicit home(const Where& where)
        : on(where), other(on, [](auto& yields) {
            for (int i = 0;; ++i) {
              yields(i);
            }
            return 0;
          }) {}
    virtual ~home() = default;
    void disturb() { other.resume(); }
    pirn::copy_stack on;
    pirn::copied_coroutine<int()> other;
  };
  struct source : pirn::detail::stack_source {
    using stack_source::stack_source;
    source(source&& other) noexcept : stack_source(other) { other.stack_source::operator=(stack_source()); }
    ~source() { give_back(); }
  };
  struct home_on_source : source, home {
    explicit home_on_source(source&& from) : source(std::move(from)), home(this->memory) {}
  };

  std::unique_ptr<home> home_;
  copied one_;
};

}  // namespace
