// Generators: a function that yields elements, which its consumer takes as a range.
//
//   pirn::generator<int> numbers = [](auto& yield) { for (int i = 1;; ++i) yield(i); };
//   for (int n : numbers | std::views::take(3)) ...
//
// One body, three drivers:
//
//   pirn::for_each<T>(body, consumer)      both inlined into one loop; no switch, nothing is suspended
//   generator<T, frame<N>> g(body)         suspended on N bytes inside the object: no allocation, cannot be moved
//   generator<T> g(body)                   suspended on a stack of the default pool, or of any allocator: movable
//
// Elements travel in registers where they fit (see generator_element). docs/generators.md gives the costs. A body may
// recurse and yield from any depth, by passing the yield object on, at the same cost for each element: the consumer is
// one switch away. Design after "Stackful Coroutine Made Fast" (2023), section 3.2, with a separate stack instead of
// the consumer's.
#pragma once

#include <concepts>
#include <cstddef>
#include <exception>
#include <iterator>
#include <memory>
#include <ranges>
#include <system_error>
#include <type_traits>
#include <utility>

#include "pirn/context/detail/stack_end.hpp"
#include "pirn/coro/detail/elements_of.hpp"  // IWYU pragma: export
#include "pirn/coro/detail/generator_core.hpp"
#include "pirn/coro/detail/generator_for_each.hpp"  // IWYU pragma: export
#include "pirn/coro/expert/generator_element.hpp"   // IWYU pragma: export
#include "pirn/stack/expert/frame_buffer.hpp"
#include "pirn/stack/expert/guarded_pool.hpp"

/// The compiler plugin replaces each call by the address of a variable of the function around it, which has room for
/// what `entry` uses and `more` bytes. The function has no definition.
extern "C" void* pirn_generator_frame_needs_the_compiler_plugin(void (*entry)(), std::size_t more,
                                                                const void* generator) noexcept;

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

template <class T>
class generator_base;

template <class T>
inline constexpr bool is_generator = false;
template <class T, class Driver>
inline constexpr bool is_generator<generator<T, Driver>> = true;

template <class Range, class T>
concept generator_of =
    is_generator<std::remove_cvref_t<Range>> && std::derived_from<std::remove_cvref_t<Range>, generator_base<T>>;

}  // namespace detail

/// The argument of the body of a generator<T>: its way to the consumer. It lives while the body runs, on the body's
/// stack, and may be passed down by reference. Its calls suspend; they throw std::logic_error if the generator is not
/// running. When the generator is destroyed they do not return: the body is unwound.
template <class T>
class generator_yield : public detail::generator_producer {
  using element = generator_element<T>;

 public:
  using value_type = typename element::value_type;

  /// Passes one element to the consumer, and returns when the consumer wants the next one.
  PIRN_ALWAYS_INLINE void operator()(value_type value)
    requires(element::by_value)
  {
    detail::word first, second;
    detail::word_pair<value_type>::pack(value, first, second);
    give(first, second);
  }
  PIRN_ALWAYS_INLINE void operator()(T&& value)
    requires(!element::by_value)
  {
    give(reinterpret_cast<detail::word>(std::addressof(value)), detail::undef_word());
  }
  PIRN_ALWAYS_INLINE void operator()(const value_type& value)
    requires(!std::is_lvalue_reference_v<T> && !element::by_value && std::copy_constructible<value_type>)
  {
    value_type copy(value);
    (*this)(std::move(copy));
  }
  /// Yields all elements of a range, in order.
  template <class Range>
    requires(detail::generator_of<Range, T>)
  PIRN_ALWAYS_INLINE void operator()(elements_of<Range> all) {
    if constexpr (std::is_lvalue_reference_v<Range>) {
      this->delegate(all.range.control_);
    } else {
      this->delegate_last(all.range.control_);
    }
  }
  template <std::ranges::input_range Range>
    requires(!detail::generator_of<Range, T>)
  void operator()(elements_of<Range> all) {
    for (auto&& value : all.range) {
      (*this)(static_cast<decltype(value)>(value));
    }
  }

  /// Lets a runtime that trims (runtime_options::trim_after) give back what the stacks of this generator's callers do
  /// not use, while a fiber waits inside the generator. Without this call that is known only for the generator's stack,
  /// since the place at which the caller waits is in a register or anywhere in the body's frames. From now on this
  /// object stays in memory: eight instructions more for each element, if it was in registers. Call it once, at the
  /// beginning of a body in which fibers wait for long. If the caller is in a generator too, that one must have made
  /// this call for its callers' stacks to be trimmed as well.
  void trim_callers() noexcept { this->show_consumer(); }

 private:
  using detail::generator_producer::generator_producer;
  template <class Control>
  friend struct detail::generator_run;
};

namespace detail {

/// A variable that the compiler plugin has made for generators with frame<>.
struct plugin_frame {
  word used;  ///< 0 at the begin of the function that has it
  word size;  ///< of the bytes behind this header: a margin and a stack
  static constexpr std::size_t margin = 128;
};
/// The allocator of such stacks, which has no state.
struct plugin_frames {
  static plugin_frame& header_of(void* limit) noexcept {
    return static_cast<plugin_frame*>(static_cast<void*>(static_cast<char*>(limit) - plugin_frame::margin))[-1];
  }
  stack_result allocate(std::size_t) = delete;
  PIRN_ALWAYS_INLINE void deallocate(stack from) noexcept { header_of(from.limit()).used = 0; }
  static plugin_frames all;
};
inline plugin_frames plugin_frames::all;
template <>
inline constexpr bool marks_end<plugin_frames> = true;
template <>
inline constexpr std::size_t margin_below<plugin_frames> = plugin_frame::margin;

/// Whether a stack of an allocator of this type has room for the body, whatever that is.
template <class Allocator>
inline constexpr bool always_fits = std::is_same_v<Allocator, plugin_frames>;

/// A separate class: argument-dependent lookup for an iterator looks at this class, and not at T, which may be
/// incomplete.
template <class T>
struct generator_iterators {
  class iterator;
};

/// The iterator of a generator: move-only, and the only one of its generator while it lives. It holds the state of the
/// suspended body. If it is destroyed before the end, it returns that state to the generator, which then continues
/// after the last element taken.
template <class T>
class generator_iterators<T>::iterator {
  using element = generator_element<T>;

 public:
  using iterator_concept = std::input_iterator_tag;
  using value_type = typename element::value_type;
  using difference_type = std::ptrdiff_t;

  iterator(iterator&& other) noexcept
      : control_(other.control_), producer_(other.producer_.take()), first_(other.first_), second_(other.second_) {}
  iterator& operator=(iterator&& other) noexcept {
    if (this != &other) {
      give_back();
      control_ = other.control_;
      producer_ = other.producer_.take();
      first_ = other.first_;
      second_ = other.second_;
    }
    return *this;
  }
  PIRN_ALWAYS_INLINE ~iterator() { give_back(); }

  /// Returns the element. The element, or the object that it refers to, lasts until the iterator is advanced.
  [[nodiscard]] PIRN_ALWAYS_INLINE typename element::reference operator*() const noexcept {
    if constexpr (element::by_value) {
      return word_pair<value_type>::unpack(first_, second_);
    } else {
      return static_cast<typename element::reference>(
          *reinterpret_cast<std::add_pointer_t<typename element::reference>>(first_));
    }
  }
  /// Runs the body up to its next element. Rethrows an exception of the body; throws std::logic_error past the end or
  /// from the body itself.
  PIRN_ALWAYS_INLINE iterator& operator++() {
    advance(undef_word());
    return *this;
  }
  PIRN_ALWAYS_INLINE void operator++(int) { ++*this; }
  [[nodiscard]] PIRN_ALWAYS_INLINE friend bool operator==(const iterator& it, std::default_sentinel_t) noexcept {
    return it.producer_.tagged();
  }

 private:
  friend class generator_base<T>;
  PIRN_ALWAYS_INLINE explicit iterator(generator_control* control) noexcept : control_(control) {}

  PIRN_ALWAYS_INLINE void advance(word message, enter_generator enter = nullptr) {
    if (producer_.tagged()) [[unlikely]] {
      generator_misused(control_);
    }
    generator_peer producer = producer_.take();
    second_ = undef_word();
    first_ = message;
    if (enter != nullptr) {
      // Copies, since these have addresses until the call is inlined.
      generator_peer side = producer;
      word first = first_, second = second_;
      enter(*control_, side, first, second);
      producer = side;
      first_ = first;
      second_ = second;
    } else {
      producer.resume(first_, second_);
    }
    producer_ = producer;
    if (producer_.tagged()) [[unlikely]] {
      producer_.sanitizer.forget();
      generator_ended(control_);
    }
  }
  PIRN_ALWAYS_INLINE void give_back() noexcept {
    if (!producer_.tagged()) {
      control_->at = producer_.take();
      control_->status = generator_status::suspended;
    }
  }

  generator_control* control_;
  generator_peer producer_{};
  word first_ = 0;
  word second_ = 0;
};

template <class Body, class T>
concept generator_body = std::invocable<std::decay_t<Body>&, generator_yield<T>&>;

/// The common base of the drivers.
template <class T>
class generator_base {
 public:
  using yield = generator_yield<T>;
  using iterator = typename generator_iterators<T>::iterator;

  /// Runs the body up to its first element, or to the next after those already taken. Rethrows an exception of the
  /// body; throws std::logic_error if this has been moved from, is running, or already has an iterator.
  [[nodiscard]] PIRN_ALWAYS_INLINE iterator begin() {
    if (control_ == nullptr || control_->status == generator_status::iterating) [[unlikely]] {
      generator_misused(control_);
    }
    iterator it(control_);
    const enter_generator enter = generator_known_fresh(*control_);
    if (control_->status != generator_status::ended) {
      it.producer_ = control_->at;
      control_->status = generator_status::iterating;
      it.advance(reinterpret_cast<word>(control_), enter);
    }
    return it;
  }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 protected:
  friend class generator_yield<T>;

  generator_base() noexcept = default;
  generator_base(const generator_base&) = delete;
  generator_base& operator=(const generator_base&) = delete;
  PIRN_ALWAYS_INLINE ~generator_base() { release(); }

  PIRN_ALWAYS_INLINE void release() noexcept {
    if (control_ != nullptr) {
      if (control_->status == generator_status::ended || control_->status == generator_status::fresh) {
        control_->operations->dispose(*control_);
      } else {
        generator_destroy(*control_);
      }
    }
  }

  /// Called before frames without a guard are unwound; at its end the body has tested this itself.
  template <class Allocator>
  PIRN_ALWAYS_INLINE void check_end() const noexcept {
    if (control_->status == generator_status::suspended || control_->status == generator_status::iterating) {
      const auto limit = reinterpret_cast<word>(control_->limit);
      if (stack_end::overwritten(limit) || stack_end::overwritten_below<margin_below<Allocator>>(limit)) [[unlikely]] {
        generator_ran_off(*control_, UINTPTR_MAX);
      }
    }
  }

  /// Puts the body on a stack. The stack returns to `from` (if that is not null) at the end, or at once if this throws.
  template <class Body, class Allocator>
  PIRN_ALWAYS_INLINE void create(Body&& body, const stack& memory, Allocator* from) {
    using control = generator_control_of<yield, std::decay_t<Body>, Allocator>;
    constexpr std::size_t alignment = alignof(control) > 16 ? alignof(control) : 16;
    constexpr std::size_t min_size = sizeof(control) + alignment + 256;
    auto* const at =
        reinterpret_cast<void*>((reinterpret_cast<word>(memory.top()) - sizeof(control)) & ~(alignment - 1));
    const bool fits = always_fits<Allocator> || memory.size() >= min_size;
    control* made = nullptr;
    if constexpr (std::is_nothrow_constructible_v<std::decay_t<Body>, Body>) {
      made = fits ? ::new (at) control(std::forward<Body>(body), memory, from) : nullptr;
    } else {
      try {
        made = fits ? ::new (at) control(std::forward<Body>(body), memory, from) : nullptr;
      } catch (...) {
        take_back(memory, from);
        throw;
      }
    }
    if (!fits) [[unlikely]] {
      take_back(memory, from);
      throw std::system_error(make_error_code(stack_error::too_small), "pirn: generator");
    }
    made->sanitizer.create(memory.limit(), memory.size(), "pirn generator");
    made->limit = memory.limit();
    made->size = memory.size();
    if constexpr (marks_end<Allocator>) {
      stack_end::put(memory.limit());
      stack_end::put_below<margin_below<Allocator>>(memory.limit());
    }
    if constexpr (!maps_stacks<Allocator>) {
      frame_bodies::made(memory.limit(), memory.top());
    }
    made->at.at = arch::prepare_producer<generator_run<control>>(at);
    made->at.sanitizer = sanitizer_peer(made->sanitizer);
    made->operations = &operations_of<control>;
    made->status = generator_status::fresh;  // again, behind all that may write there for all the compiler knows
    control_ = made;
  }
  template <class Control>
  static constexpr generator_operations make_operations() noexcept {
    using body = decltype(Control::body);
    using allocator = typename Control::allocator;
    generator_operations made{&Control::give_back, &generator_run<Control>::enter};
    if constexpr (std::is_same_v<allocator, guarded_pool>) {
      made.pooled = true;
      if constexpr (std::is_nothrow_move_constructible_v<body>) {
        made.run_here = &generator_run<Control>::run_here;
        made.to_larger = &to_larger<body>;
      }
    } else if constexpr (marks_end<allocator>) {
      made.body = &body_name<body>;
    }
    return made;
  }
  template <class Control>
  static constexpr generator_operations operations_of = make_operations<Control>();
  template <class Body>
  PIRN_COLD static generator_control* to_larger(generator_control& fresh) noexcept {
    constexpr std::size_t times = 16;
    auto& from = static_cast<generator_control_of<yield, Body, guarded_pool>&>(fresh);
    const stack_result got = from.owner->allocate(times * from.size);
    if (!got) {
      return &fresh;
    }
    generator_base larger;
    larger.create(std::move(from.body), got.value, from.owner);
    larger.control_->size = from.size;
    fresh.operations->dispose(fresh);
    return std::exchange(larger.control_, nullptr);
  }
  template <class Allocator>
  static void take_back(const stack& memory, Allocator* from) noexcept {
    if constexpr (!std::is_void_v<Allocator>) {
      from->deallocate(memory);
    }
  }
  template <class Body, class Allocator>
  PIRN_ALWAYS_INLINE void create_from(Allocator& from, std::size_t size, Body&& body) {
    create(std::forward<Body>(body), stack_of(from, size), &from);
  }
  // A function, so that the result is gone before the generator is made. To the compiler its end writes to the
  // generator, which may lie in it.
  template <class Allocator>
  PIRN_ALWAYS_INLINE static stack stack_of(Allocator& from, std::size_t size) {
    const stack_result got = from.allocate(size);
    if (!got) [[unlikely]] {
      throw std::system_error(make_error_code(got.error), "pirn: generator");
    }
    return got.value;
  }

  generator_control* control_ = nullptr;
};

}  // namespace detail

/// A range of the elements that a body yields. The body runs on a separate stack, from one element to the next, when
/// the range is iterated. It is unwound if the generator is destroyed before its end, which takes about 5 KB of that
/// stack the first time in a process. Movable, not thread-safe; several threads may iterate in turn. A view and an
/// input range. Its iterator must not outlive it, and no other may be taken while one lives (std::logic_error).
///
/// Exceptions in flight belong to the OS thread, and an element does not switch them. So a body may yield inside a
/// catch block only under two conditions. Catch blocks must nest across all generators and consumers of the thread: the
/// block entered last is left first. And the body must leave its block, on the same thread, before the generator is
/// destroyed. A body must not yield in a destructor that an exception runs. Otherwise use a coroutine, whose exceptions
/// stay with it.
template <class T>
class [[nodiscard]] generator<T, own_stack> : public detail::generator_base<T>, public std::ranges::view_base {
 public:
  /// Makes a generator on a stack of 64 KiB from the default pool. Throws std::system_error if there is no stack.
  template <detail::generator_body<T> Body>
    requires(!detail::is_generator<std::remove_cvref_t<Body>>)
  PIRN_ALWAYS_INLINE generator(Body&& body) {
    this->create_from(default_stack_pool(), default_stack_size, std::forward<Body>(body));
  }
  /// Makes a generator on a stack of `size` bytes from this allocator, which must outlive the generator.
  template <stack_allocator Allocator, detail::generator_body<T> Body>
  PIRN_ALWAYS_INLINE generator(Allocator& from, std::size_t size, Body&& body) {
    this->create_from(from, size, std::forward<Body>(body));
  }
  /// Makes a generator on the caller's memory, which must outlive it.
  template <detail::generator_body<T> Body>
  PIRN_ALWAYS_INLINE generator(const stack& memory, Body&& body) {
    this->create(std::forward<Body>(body), memory, static_cast<void*>(nullptr));
  }
  PIRN_ALWAYS_INLINE generator(generator&& other) noexcept { this->control_ = std::exchange(other.control_, nullptr); }
  generator& operator=(generator&& other) noexcept {
    auto* const taken = std::exchange(other.control_, nullptr);  // first, since the body that ends now may own it
    this->release();
    this->control_ = taken;
    return *this;
  }
};

namespace detail {
#if defined(PIRN_VALGRIND)
/// valgrind takes a switch from a frame to a buffer inside it for a call or a return, and the bytes between for freed.
template <std::size_t N>
class frame_memory {
 public:
  stack_result allocate(std::size_t) noexcept { return {stack(bytes_.get(), bytes_.get() + N), stack_error::none}; }
  void deallocate(stack) noexcept {}
  void* limit() noexcept { return bytes_.get(); }

 private:
  std::unique_ptr<char[]> bytes_ = std::make_unique<char[]>(N);
};
template <std::size_t N>
inline constexpr bool marks_end<frame_memory<N>> = true;
#else
template <std::size_t N>
using frame_memory = frame_buffer<N>;
#endif
}  // namespace detail

/// As generator<T>, but on N bytes inside the object. It therefore cannot be moved, and is a range but not a view. The
/// bytes have no guard: see frame.
template <class T, std::size_t N>
class [[nodiscard]] generator<T, frame<N>> : detail::frame_memory<N>, public detail::generator_base<T> {
 public:
  /// Makes a generator, suspended before the first statement of `body`.
  template <detail::generator_body<T> Body>
    requires(!detail::is_generator<std::remove_cvref_t<Body>>)
  PIRN_ALWAYS_INLINE generator(Body&& body) {
    this->create_from(static_cast<detail::frame_memory<N>&>(*this), N, std::forward<Body>(body));
  }
  generator(generator&&) = delete;
  generator& operator=(generator&&) = delete;
  PIRN_ALWAYS_INLINE ~generator() { this->template check_end<detail::frame_memory<N>>(); }
};

namespace detail {

[[noreturn]] PIRN_COLD inline void generator_frame_in_use() noexcept {
  fail_contract("a generator with frame<> was made where the last one that the same statement has made still lives");
}

}  // namespace detail

/// As generator<T, frame<N>>, with as many bytes as the body needs, which the compiler plugin finds. They are part of
/// the frame of the function of which this is a variable. One statement must not make a second one while the first
/// lives; the program ends with a message then.
template <class T>
class [[nodiscard]] generator<T, frame<0>> : public detail::generator_base<T> {
 public:
  /// Makes a generator, suspended before the first statement of `body`.
  template <detail::generator_body<T> Body>
    requires(!detail::is_generator<std::remove_cvref_t<Body>>)
  PIRN_ALWAYS_INLINE generator(Body&& body) {
    static_assert(std::is_empty_v<sanitizer_state>,
                  "generators with frame<> are not available in builds with a sanitizer or for valgrind");
    using control = detail::generator_control_of<typename generator::yield, std::decay_t<Body>, detail::plugin_frames>;
    constexpr std::size_t more = sizeof(control) + alignof(control) + 64 + detail::plugin_frame::margin;
    constexpr auto entry = &arch::producer_entry<detail::generator_run<control>>;
    auto& memory = *static_cast<detail::plugin_frame*>(
        pirn_generator_frame_needs_the_compiler_plugin(reinterpret_cast<void (*)()>(entry), more, this));
    if (memory.used != 0) [[unlikely]] {
      detail::generator_frame_in_use();
    }
    char* const margin = reinterpret_cast<char*>(&memory + 1);
    this->create(std::forward<Body>(body), stack(margin + detail::plugin_frame::margin, margin + memory.size),
                 &detail::plugin_frames::all);
    memory.used = 1;
  }
  generator(generator&&) = delete;
  generator& operator=(generator&&) = delete;
  PIRN_ALWAYS_INLINE ~generator() {
    // As release() of the base, without a call through a pointer where the body has ended: a body that makes such a
    // generator would have no bound.
    this->template check_end<detail::plugin_frames>();
    detail::generator_control& control = *this->control_;
    if (control.status == detail::generator_status::ended) {
      char* const limit = static_cast<char*>(control.limit);
      const stack memory(limit, limit + control.size);
      detail::stack_end::check("a generator", limit, memory.top(), UINTPTR_MAX, control.operations->body);
      std::destroy_at(&control);
      detail::frame_bodies::gone(limit, memory.top());
      detail::plugin_frames::all.deallocate(memory);
    } else {
      detail::generator_break_off(control);
    }
    this->control_ = nullptr;  // last, so that the compiler knows it in the destructor of the base
  }
};

/// A shorter name of generator<T, frame<N>>.
template <class T, std::size_t N = 8192>
using frame_generator = generator<T, frame<N>>;

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
