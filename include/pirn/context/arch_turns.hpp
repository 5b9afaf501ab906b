// Two sides that take turns, in terms of `transfer`. Included by arch.hpp only, where the ISA has nothing better.
#pragma once

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch {

template <class Run>
PIRN_NONE void producer_entry(void* pc, void* sp, void* fp, word message, word, word, word) {
  Run::run(peer{pc, sp, fp}, message);
}
template <class Run>
PIRN_ALWAYS_INLINE peer prepare_producer(void* top) noexcept {
  return arch::prepare(top, &producer_entry<Run>);  // qualified: else what it is a template of is looked at
}

template <word mark = 0>
PIRN_ALWAYS_INLINE void switch_to_producer(peer& to, word& first, word& second) noexcept {
  word values[value_words] = {first, second, no_word(), no_word()};
  if constexpr (mark == 0) {
    transfer(to, values);
  } else {
    transfer_flagged(to, values);
  }
  first = values[0];
  second = values[1];
}

PIRN_ALWAYS_INLINE void switch_to_consumer(peer& to, word& first, word second) noexcept {
  switch_to_producer(to, first, second);
}

PIRN_ALWAYS_INLINE void switch_to_delegate(peer& to, word& first) noexcept {
  word second = no_word();
  switch_to_producer<1>(to, first, second);
}

[[noreturn]] PIRN_ALWAYS_INLINE void end_to_consumer(const peer& to) noexcept {
  const word values[value_words] = {no_word(), no_word(), no_word(), no_word()};
  transfer_last(to, values);
}

[[noreturn]] PIRN_ALWAYS_INLINE void end_to_delegator(const peer& to) noexcept { end_to_consumer(to); }

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
