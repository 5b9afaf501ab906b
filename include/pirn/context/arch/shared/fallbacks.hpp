// The functions that an ISA may write better, in terms of those that it must write: the last switches by `switch_to`,
// and asymmetric transfer between a producer and its consumer by `transfer`. Included by arch.hpp only, behind the file
// of the ISA.
#pragma once

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch {

/// The last switch of a context by `switch_to`: its stack is free as soon as `to` runs.
[[noreturn]] PIRN_ALWAYS_INLINE void switch_last(const context& to, word first, word second) noexcept {
  context abandoned;
  switch_to(abandoned, to, first, second);
  __builtin_unreachable();
}

#if defined(__i386__)
/// As `switch_last(prepare(top, entry), first, second)`.
[[noreturn]] PIRN_ALWAYS_INLINE void enter_last(void* top, switch_entry entry, word first, word second) noexcept {
  switch_last(prepare(top, entry), first, second);
}
#endif

template <class Run>
PIRN_NONE void producer_entry(void* pc, void* sp, void* fp, word message, word, word, word) {
  Run::run(peer{pc, sp, fp}, message);
}
template <class Run>
PIRN_ALWAYS_INLINE peer prepare_producer(void* top) noexcept {
  return arch::prepare(top, &producer_entry<Run>);  // qualified: else lookup considers the template argument
}

template <word tag = 0>
PIRN_ALWAYS_INLINE void resume_producer(peer& to, word& first, word& second) noexcept {
  word values[value_words] = {first, second, undef_word(), undef_word()};
  if constexpr (tag == 0) {
    transfer(to, values);
  } else {
    transfer_tagged(to, values);
  }
  first = values[0];
  second = values[1];
}

/// `to` is what prepare_producer has returned.
template <class Run>
PIRN_ALWAYS_INLINE void begin_producer(void*, peer& to, word& first, word& second) noexcept {
  resume_producer(to, first, second);
}

PIRN_ALWAYS_INLINE void yield_to_consumer(peer& to, word& first, word second) noexcept {
  resume_producer(to, first, second);
}

PIRN_ALWAYS_INLINE void delegate_to(peer& to, word& first) noexcept {
  word second = undef_word();
  resume_producer<1>(to, first, second);
}

[[noreturn]] PIRN_ALWAYS_INLINE void finish_to_consumer(const peer& to) noexcept {
  const word values[value_words] = {undef_word(), undef_word(), undef_word(), undef_word()};
  transfer_last(to, values);
}

[[noreturn]] PIRN_ALWAYS_INLINE void finish_to_delegator(const peer& to) noexcept { finish_to_consumer(to); }

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
