// One stack for any number of contexts: a suspended one keeps its live bytes, and nothing else, in a buffer.
//
//        +-------------------------+ top, 16-byte aligned
//        | root frame              |  the same for all: not copied        an image, while another uses the stack
//        +-------------------------+ base                                  +-------------------------+
//        | entry function's frame  |                                       | copy of [sp, base)      |
//        | ...                     |                                       |                         |
//        | frame that suspends     |                                       +-------------------------+
//        +-------------------------+ sp of the suspended context           | pc, fp                  |
//        | free: nothing is live   |                                       +-------------------------+ image
//        +-------------------------+ limit
//        | guard                   |
//        +-------------------------+
//
// Facts that shape the code:
//   * The resumer copies: the occupant of the stack out, the context in. So a context alone on its stack is never
//     copied, and all copying is done on another stack.
//   * A leaf function keeps live values below sp, in the red zone, and an image begins at sp. So `suspend`, which is
//     inlined, contains a call that the compiler cannot leave out and cannot make a tail call: a function that calls
//     has no red zone. An out-of-line switch would have the same effect, and cost 10 ns for each return to other code
//     than its call, and 48 bytes of each image for registers that the compiler saves here only if they are live.
//   * Suspended contexts differ by their images and copied_contexts. The state of the context on the stack, and of its
//     resumer, is in copy_stack, which is in the cache.
//   * A context comes back to the addresses that it had, so its own pointers into its stack stay right. Other code must
//     not follow a pointer into the stack of a suspended context: the frames of another one may lie there.
//
// No exceptions, no run-time types, no C++ runtime: the library for C programs is built on this.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <type_traits>

#include "pirn/context/arch.hpp"
#include "pirn/context/detail/body_blocks.hpp"
#include "pirn/context/detail/stack_end.hpp"
#include "pirn/context/detail/stored_peer.hpp"
#include "pirn/context/expert/sanitizer.hpp"
#include "pirn/detail/contract.hpp"
#include "pirn/detail/exiting.hpp"
#include "pirn/stack/detail/image_copy.hpp"
#include "pirn/stack/detail/shared_stacks.hpp"
#include "pirn/stack/expert/copy_stack_options.hpp"
#include "pirn/stack/expert/image_memory.hpp"
#include "pirn/stack/stack.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

class copied_context;

/// A stack that copied_contexts share. Not thread-safe: one thread at a time may use it and the contexts on it. Must
/// outlive them: destroyed before one that has not ended, it ends the program with a message.
class copy_stack {
 public:
  /// Uses the caller's memory, from any stack_allocator for example, which must outlive it. Check `error` afterwards.
  explicit copy_stack(const stack& memory, const copy_stack_options& options = {}) noexcept : options_(options) {
    use(memory);
    detail::frame_bodies::made_anywhere();
    if (error_ == stack_error::none) {
      detail::stack_end::put(memory.limit());
      marked_ = true, size_ = 0;
    }
  }
  /// Maps `size` bytes, rounded up to whole pages, and a guard of 64 KiB below them. Check `error` afterwards.
  explicit copy_stack(std::size_t size, const copy_stack_options& options = {}) noexcept;
  copy_stack(const copy_stack&) = delete;
  copy_stack& operator=(const copy_stack&) = delete;
  ~copy_stack();

  /// Returns why no context can run on it, or `none`: no memory; invalid_size (4 GiB or more, or less than 512 bytes);
  /// guard_refused if its memory cannot be protected, since its top is no page boundary.
  [[nodiscard]] stack_error error() const noexcept { return error_; }
  [[nodiscard]] const stack& memory() const noexcept { return memory_; }  ///< where contexts run
  /// Whether an sp lies on it and needs no further check: never with `protect`, or in the caller's memory.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool plainly_contains(arch::word sp) const noexcept { return sp - limit_ < size_; }

  /// Ends the program with a message if code on the caller's memory, with this sp, has run off that memory.
  PIRN_ALWAYS_INLINE void check_end(arch::word sp = UINTPTR_MAX) const noexcept {
    if (marked_) {
      detail::stack_end::check("a copy_stack", memory_.limit(), memory_.top(), sp);
    }
  }
  /// Whether `copy_stack_options::check` is `protect`.
  [[nodiscard]] bool protects() const noexcept { return options_.check == copy_stack_check::protect; }

  /// Room for words that must not be in an image; for the running context, until the next switch.
  arch::word received[arch::value_words] = {};

  /// The values of its contexts' variables.
  [[nodiscard]] PIRN_ALWAYS_INLINE detail::values_by_body& variables() noexcept { return variables_; }

  // ---- for the code on it: an entry function of `transfer`, which may use the first three words that it gets ----

  /// The first statement of an entry function, with its first three arguments.
  PIRN_ALWAYS_INLINE void entered(void* pc, void* sp, void* fp) noexcept {
    resumer_ = {pc, reinterpret_cast<arch::word>(sp), fp};
    sanitizer_peer resumer;
    resumer.arrive();
    resumer_sanitizer_ = resumer;
  }
  /// Suspends the running context and sends `words` to its resumer. On return they hold the words that the next resumer
  /// sent. Returns whether that one interrupts the context.
  PIRN_ALWAYS_INLINE bool suspend(arch::word (&words)[arch::value_words]) noexcept {
    arch::peer to = resumer_.get();
    sanitizer_peer resumer = resumer_sanitizer_;
    resumer.leave();
    arch::transfer(to, words);
    resumer.arrive();
    resumer_sanitizer_ = resumer;
    resumer_ = detail::stored_peer(to);
    if (arch::is_tagged(to)) [[unlikely]] {
      interrupted();  // the call that keeps the red zone empty
      asm volatile("" ::: "memory");
      return true;
    }
    return false;
  }
  /// The last statement of an entry function: the context has ended, and its resumer gets `words`.
  [[noreturn]] PIRN_ALWAYS_INLINE void finish(const arch::word (&words)[arch::value_words]) noexcept {
    const arch::peer to = resumer_.get();
    sanitizer_peer resumer = resumer_sanitizer_;
    resumer.leave_for_good();
    arch::transfer_last(to, words);
  }

 private:
  friend class copied_context;
  static constexpr std::size_t guard_size = std::size_t{64} << 10;

  void use(const stack& memory) noexcept;
  void interrupted() noexcept;
  void lock() noexcept;
  void unlock() noexcept;
  [[nodiscard]] bool running() const noexcept { return occupant_ != nullptr && ready_ == nullptr && !locked_; }
  /// The bytes of the occupant that an image of it must hold.
  [[nodiscard]] PIRN_ALWAYS_INLINE std::size_t live_bytes() const noexcept {
    return reinterpret_cast<arch::word>(base_) - suspended_.sp + arch::switch_zone;
  }

  copied_context* ready_ = nullptr;     // the occupant, if it can be resumed as it is
  copied_context* occupant_ = nullptr;  // the context whose frames lie there
  detail::stored_peer suspended_;       // its state, while it does not run
  detail::stored_peer resumer_;         // of the running context
  char* base_ = nullptr;
  arch::word limit_ = 0;
  arch::word size_ = 0;    // 0: `plainly_contains` is always false
  std::size_t small_ = 0;  // an image of fewer bytes, as many as before, needs no check of its buffer
  [[no_unique_address]] sanitizer_peer resumer_sanitizer_;
  bool marked_ = false;  // there is a word at its limit
  bool locks_ = false;   // lock() has something to do
  bool locked_ = false;
  stack_error error_ = stack_error::none;
  char* locked_from_ = nullptr;
  stack memory_;
  char* mapping_ = nullptr;
  copy_stack_options options_;
  std::size_t contexts_ = 0;  // that have not ended
  detail::values_by_body variables_{
      this, [](const void* of) noexcept -> const void* { return static_cast<const copy_stack*>(of)->occupant_; }};
};

/// One of the contexts on a copy_stack, as its owner holds it: 48 bytes, less than a line of the cache.
class copied_context {
 public:
  copied_context() noexcept = default;
  /// Makes a context that is suspended before `entry`, which begins with `entered` and ends with `finish`.
  copied_context(copy_stack& on, arch::transfer_entry entry) noexcept : on_(&on), state_(state::fresh), entry_(entry) {
    on.contexts_ += 1;
    if (on.error_ == stack_error::none) {
      sanitizer_.create(on.memory_.limit(), on.memory_.size(), "copied_context");
      peer_sanitizer_ = sanitizer_peer(sanitizer_);
    }
  }
  /// The other context must not be running.
  PIRN_ALWAYS_INLINE copied_context(copied_context&& other) noexcept;
  PIRN_ALWAYS_INLINE copied_context& operator=(copied_context&& other) noexcept {
    if (this != &other) {
      end();
      new (this) copied_context(static_cast<copied_context&&>(other));
    }
    return *this;
  }
  PIRN_ALWAYS_INLINE ~copied_context() { end(); }
  /// Makes it done. The frames of a suspended context are discarded: nothing in them is destroyed. It must not run.
  PIRN_ALWAYS_INLINE void end() noexcept;

  /// Puts its frames onto the stack, unless they are there. Returns an error if it cannot, and changes nothing then:
  /// no_image_memory if the image of the occupant does not fit into its buffer and no larger one can be had;
  /// stack_in_use if a context runs on that stack, that is, calls this; and the stack's own. Takes time linear in the
  /// two images if there is something to copy. It must not be done.
  [[nodiscard]] PIRN_ALWAYS_INLINE stack_error bring_in() noexcept {
    return on_->ready_ == this ? stack_error::none : exchange();
  }
  /// Runs the context, which must have been brought in, until it suspends (true) or ends. `words` are sent, and then
  /// hold the received words. Call `settle` after it.
  PIRN_ALWAYS_INLINE bool run(arch::word (&words)[arch::value_words]) noexcept {
    arch::peer to = leave();
    arch::transfer(to, words);
    return arrive(to);
  }
  /// As `run`, but the `suspend` of the context returns true. It must not be fresh.
  bool interrupt(arch::word (&words)[arch::value_words]) noexcept {
    arch::peer to = leave();
    arch::transfer_tagged(to, words);
    return arrive(to);
  }
  /// To be called when the resumer has taken the words that the context sent and no longer reads its frames.
  PIRN_ALWAYS_INLINE void settle() noexcept {
    if (on_->locks_) [[unlikely]] {
      on_->lock();
    }
  }
  /// Prefetches its image, for a context that will be resumed soon, after others.
  PIRN_ALWAYS_INLINE void prefetch() const noexcept { __builtin_prefetch(image_, 1); }

  /// Allocates a buffer for an image of at least `size` bytes before the first resume instead of at the first copy.
  /// False if it cannot be had.
  [[nodiscard]] bool reserve(std::size_t size) noexcept { return fresh() && fit(size + sizeof(header)); }
  /// Whether there is nothing to resume: the context has ended, or this never was one.
  [[nodiscard]] bool done() const noexcept { return state_ == state::none; }
  /// Whether it has been resumed, and not ended.
  [[nodiscard]] PIRN_ALWAYS_INLINE bool begun() const noexcept { return state_ == state::begun; }
  /// Whether it has not been resumed yet.
  [[nodiscard]] bool fresh() const noexcept { return state_ == state::fresh; }
  /// Whether it runs, or waits for one that it resumed.
  [[nodiscard]] bool running() const noexcept { return on_ != nullptr && on_->occupant_ == this && on_->running(); }
  [[nodiscard]] copy_stack* on() const noexcept { return on_; }  ///< its stack
  /// Returns the statistics of this context's images.
  [[nodiscard]] image_statistics statistics() const noexcept {
    return fresh() ? image_statistics{} : image_statistics{largest_, copies_, bytes_};
  }
  /// Returns its buffer, which is unused before the first resume.
  [[nodiscard]] void* buffer() const noexcept { return image_; }
  /// Bytes of its buffer.
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }

 private:
  friend class copy_stack;
  enum class state : std::uint32_t { none, fresh, begun };
  static constexpr std::uint32_t unsaved = UINT32_MAX;  // no small image is that large
  struct header {
    void* pc;
    void* fp;
  };

  PIRN_ALWAYS_INLINE arch::peer leave() noexcept {
    on_->ready_ = nullptr;
    peer_sanitizer_.leave();
    return on_->suspended_.get();
  }
  PIRN_ALWAYS_INLINE bool arrive(const arch::peer& from) noexcept {
    copy_stack& on = *on_;
    peer_sanitizer_.arrive();
    if (arch::is_tagged(from)) [[unlikely]] {
      on.variables_.end(this);  // if its entry function has left any
      state_ = state::none;
      on.occupant_ = nullptr;
      on.contexts_ -= 1;
      peer_sanitizer_.forget();
      return false;
    }
    on.suspended_ = detail::stored_peer(from);
    on.ready_ = this;
    return true;
  }
  stack_error exchange() noexcept;
  stack_error exchange_small() noexcept;
  stack_error exchange_any() noexcept;
  PIRN_ALWAYS_INLINE bool suits(std::size_t size, const copy_stack& on) const noexcept;
  template <class Copy>
  PIRN_ALWAYS_INLINE void save(std::size_t size, const copy_stack& on, Copy copy) noexcept;
  template <class Copy>
  PIRN_ALWAYS_INLINE void restore(copy_stack& on, Copy copy) noexcept;
  bool fit(std::size_t bytes) noexcept;
  [[noreturn]] static void misused(const char* how) noexcept { detail::fail_contract(how); }

  copy_stack* on_ = nullptr;
  char* image_ = nullptr;
  std::uint32_t size_ = unsaved;  // of the image, without its header
  std::uint32_t capacity_ = 0;    // of the buffer
  std::uint32_t largest_ = 0;
  state state_ = state::none;
  union {
    arch::transfer_entry entry_;  // while it is fresh
    std::uint64_t copies_ = 0;
  };
  std::uint64_t bytes_ = 0;
  [[no_unique_address]] sanitizer_state sanitizer_;
  [[no_unique_address]] sanitizer_peer peer_sanitizer_;
};

static_assert(!std::is_empty_v<sanitizer_state> || sizeof(copied_context) <= 48);

// ---- the stack ------------------------------------------------------------------------------------------------------

inline copy_stack::copy_stack(std::size_t size, const copy_stack_options& options) noexcept : options_(options) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (size == 0 || size > UINT32_MAX - page) {
    error_ = stack_error::invalid_size;
    return;
  }
  size = (size + page - 1) / page * page;
  void* const mapping =
      mmap(nullptr, guard_size + size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (mapping == MAP_FAILED) {
    error_ = stack_error::address_space;
    return;
  }
  mapping_ = static_cast<char*>(mapping);
  char* const limit = mapping_ + guard_size;
  if (mprotect(limit, size, PROT_READ | PROT_WRITE) != 0) {
    error_ = stack_error::out_of_memory;
    munmap(mapping_, guard_size + size);
    mapping_ = nullptr;
    return;
  }
  use({limit, limit + size});
}

inline void copy_stack::use(const stack& memory) noexcept {
  memory_ = memory;
  if (memory.size() < 512 || memory.size() > UINT32_MAX) {
    error_ = stack_error::invalid_size;
    return;
  }
  auto* const top = static_cast<char*>(memory.top());
  base_ = top - arch::root_size;
  limit_ = reinterpret_cast<arch::word>(memory.limit());
  detail::shared_stacks::made(memory, variables_);
  size_ = memory.size();
  small_ = options_.shrink_ratio == 0 ? detail::small_image : 0;
#if defined(PIRN_ASAN)
  locks_ = true;
#endif
  if (options_.check == copy_stack_check::protect) {
    locks_ = true;
    size_ = 0;
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t inside = memory.size() / page * page;
    locked_from_ = top - inside;
    if (reinterpret_cast<std::uintptr_t>(top) % page != 0 || inside == 0) {
      error_ = stack_error::guard_refused;
    }
  }
}

inline copy_stack::~copy_stack() {
  if (contexts_ != 0) {
    if (platform::left_to_exit()) {
      return;  // exit may run on this stack
    }
    copied_context::misused("a copy_stack was destroyed while a context on it had not ended");
  }
  unlock();
  check_end();
  if (base_ != nullptr) {
    detail::shared_stacks::gone(memory_);
  }
  if (mapping_ != nullptr) {
    munmap(mapping_, guard_size + memory_.size());
  }
}

PIRN_NOINLINE inline void copy_stack::interrupted() noexcept {
  resumer_ = detail::stored_peer(arch::untagged(resumer_.get()));
}

/// Makes the frames of the occupant inaccessible.
PIRN_NOINLINE inline void copy_stack::lock() noexcept {
  auto* const top = static_cast<char*>(memory_.top());
  ready_ = nullptr;
  locked_ = true;
#if defined(PIRN_ASAN)
  locked_from_ = occupant_ == nullptr ? top : reinterpret_cast<char*>(suspended_.sp);
  __asan_poison_memory_region(locked_from_, static_cast<std::size_t>(top - locked_from_));
#else
  if (mprotect(locked_from_, static_cast<std::size_t>(top - locked_from_), PROT_NONE) != 0) {
    copied_context::misused("a copy_stack's memory cannot be protected: mprotect failed");
  }
#endif
}

inline void copy_stack::unlock() noexcept {
  if (!locked_) {
    return;
  }
  locked_ = false;
  const auto size = static_cast<std::size_t>(static_cast<char*>(memory_.top()) - locked_from_);
#if defined(PIRN_ASAN)
  __asan_unpoison_memory_region(locked_from_, size);
#else
  if (mprotect(locked_from_, size, PROT_READ | PROT_WRITE) != 0) {
    copied_context::misused("a copy_stack's memory cannot be made accessible: mprotect failed");
  }
#endif
}

// ---- the contexts ---------------------------------------------------------------------------------------------------

/// The usual case of bring_in: the outgoing image is small, as large as its last one and as large as the incoming one.
PIRN_NOINLINE inline stack_error copied_context::exchange() noexcept {
  copy_stack& on = *on_;
  copied_context* const out = on.ready_;
  const std::size_t size = on.live_bytes();
  if (out != nullptr && size == size_ && size == out->size_ && size < on.small_) {
    detail::fetch_ahead(out->image_, image_);
    out->copies_ += 1;
    auto& goes = *reinterpret_cast<header*>(out->image_);
    const auto& comes = *reinterpret_cast<const header*>(image_);
    goes.pc = on.suspended_.pc;
    goes.fp = on.suspended_.fp;
    on.suspended_.pc = comes.pc;
    on.suspended_.fp = comes.fp;
    detail::exchange_small_images(on.base_ - size, out->image_ + sizeof(header), image_ + sizeof(header), size);
    out->bytes_ += size;
    on.occupant_ = on.ready_ = this;
    return stack_error::none;
  }
  return exchange_small();
}

/// The case in which each image is small, and the outgoing one suits its buffer.
PIRN_NOINLINE inline stack_error copied_context::exchange_small() noexcept {
  copy_stack& on = *on_;
  copied_context* const out = on.ready_;
  if (out != nullptr && state_ == state::begun && size_ < detail::small_image) {
    const std::size_t size = on.live_bytes();
    if (size < detail::small_image && out->suits(size, on)) {
      out->save(size, on, &detail::copy_small_image);
      restore(on, &detail::copy_small_image);
      return stack_error::none;
    }
  }
  return exchange_any();
}

PIRN_NOINLINE inline stack_error copied_context::exchange_any() noexcept {
  copy_stack& on = *on_;
  if (state_ == state::none) {
    misused("a copied_context was resumed after its end");
  }
  if (on.error_ != stack_error::none) {
    return on.error_;
  }
  if (on.running()) {
    return stack_error::stack_in_use;
  }
  on.unlock();
  copied_context* const out = on.occupant_;
  if (out == this) {
    on.ready_ = this;
    return stack_error::none;
  }
  if (out != nullptr) {
    const std::size_t size = on.live_bytes();
    if (!out->suits(size, on) && !out->fit(size + sizeof(header)) && out->capacity_ < size + sizeof(header)) {
      on.ready_ = out;
      out->settle();
      return stack_error::no_image_memory;
    }
    if (detail::is_exchanged(size) && size == size_ && size == out->size_) {
      out->save(size, on, detail::exchange_with{image_ + sizeof(header)});
      return restore(on, [](char*, const char*, std::size_t) noexcept {}), stack_error::none;
    }
    out->save(size, on, &detail::copy_image);
  }
  if (state_ == state::begun) {
    restore(on, &detail::copy_image);
    return stack_error::none;
  }
  on.suspended_ = detail::stored_peer(arch::prepare(on.memory_.top(), entry_));
  on.occupant_ = on.ready_ = this;
  state_ = state::begun;
  size_ = unsaved, copies_ = 0;
  return stack_error::none;
}

/// Whether the buffer is neither too small nor too large.
PIRN_ALWAYS_INLINE bool copied_context::suits(std::size_t size, const copy_stack& on) const noexcept {
  const std::size_t bytes = size + sizeof(header);
  const std::uint32_t ratio = on.options_.shrink_ratio;
  return bytes <= capacity_ && (ratio == 0 || capacity_ / ratio <= bytes);
}

template <class Copy>
PIRN_ALWAYS_INLINE void copied_context::save(std::size_t size, const copy_stack& on, Copy copy) noexcept {
  auto& kept = *reinterpret_cast<header*>(image_);
  kept.pc = on.suspended_.pc;
  kept.fp = on.suspended_.fp;
  copy(image_ + sizeof(header), on.base_ - size, size);
#if defined(PIRN_ASAN)
  __asan_unpoison_memory_region(on.base_ - size, size);  // the next one's frames begin on what these have poisoned
#endif
  size_ = static_cast<std::uint32_t>(size);
  largest_ = size_ > largest_ ? size_ : largest_;
  copies_ += 1;
  bytes_ += size;
}

template <class Copy>
PIRN_ALWAYS_INLINE void copied_context::restore(copy_stack& on, Copy copy) noexcept {
  char* const to = on.base_ - size_;
#if defined(PIRN_ASAN)
  __asan_unpoison_memory_region(to, size_);
#endif
  const auto& kept = *reinterpret_cast<const header*>(image_);
  on.suspended_ = {kept.pc, reinterpret_cast<arch::word>(to) + arch::switch_zone, kept.fp};
  copy(to, image_ + sizeof(header), size_);
  on.occupant_ = on.ready_ = this;
}

/// Replaces the buffer, whose contents are lost, by one of at least `bytes`: as large as a malloc gives anyway that has
/// one word beside each block and blocks of multiples of 16. False, and the old buffer, if there is no memory.
PIRN_NOINLINE inline bool copied_context::fit(std::size_t bytes) noexcept {
  const image_memory& memory = on_->options_.images;
  const std::size_t rounded = ((bytes + sizeof(void*) + 15) & ~std::size_t{15}) - sizeof(void*);
  if (rounded > UINT32_MAX) {
    return false;
  }
  void* const larger = memory.allocate(memory.state, rounded);
  if (larger == nullptr) {
    return false;
  }
  if (image_ != nullptr) {
    memory.deallocate(memory.state, image_, capacity_);
  }
  image_ = static_cast<char*>(larger);
  capacity_ = static_cast<std::uint32_t>(rounded);
  return true;
}

PIRN_ALWAYS_INLINE copied_context::copied_context(copied_context&& other) noexcept
    : on_(other.on_),
      image_(other.image_),
      size_(other.size_),
      capacity_(other.capacity_),
      largest_(other.largest_),
      state_(other.state_),
      copies_(other.copies_),
      bytes_(other.bytes_),
      sanitizer_(other.sanitizer_),
      peer_sanitizer_(other.peer_sanitizer_) {
  if (on_ != nullptr && on_->occupant_ == &other) {
    if (on_->running()) {
      misused("a copied_context was moved while it runs");
    }
    on_->occupant_ = this;
    on_->ready_ = on_->ready_ == nullptr ? nullptr : this;
  }
  if (fresh()) {
    entry_ = other.entry_;
  } else if (begun() && on_->variables_.any()) [[unlikely]] {
    on_->variables_.move(&other, this);
  }
  other.on_ = nullptr;
  other.state_ = state::none;
}

PIRN_ALWAYS_INLINE void copied_context::end() noexcept {
  if (on_ == nullptr) {
    return;
  }
  if (on_->occupant_ == this) {
    if (on_->running()) {
      if (platform::left_to_exit()) {
        return;
      }
      misused("a copied_context was destroyed while it runs");
    }
    on_->unlock();
    on_->occupant_ = on_->ready_ = nullptr;
  }
  if (fresh()) {
    copies_ = 0;
  }
  if (!done()) {
    on_->contexts_ -= 1;
    on_->variables_.end(this);
  }
  state_ = state::none;
  peer_sanitizer_.forget();
  sanitizer_.destroy();
  if (image_ != nullptr) {
    on_->options_.images.deallocate(on_->options_.images.state, image_, capacity_);
    image_ = nullptr;
    capacity_ = 0;
  }
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
