// The part that is alike in all ISAs, in terms of names that their files define: `start_frame`, and in `detail`
// `transfer_start` (the start frame of entry functions reached by `transfer`), `prepare_at` and `transfer_tagging`.
// Included by those files only.
#pragma once

#include "pirn/context/arch/shared/types.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace arch {

/// Builds a context that enters `entry` on the stack that ends at `top`, with sp aligned as the ABI has it at a
/// function's entry. Writes at most 64 bytes below `top` (rounded down to 16). Any thread may resume the result.
PIRN_ALWAYS_INLINE context prepare(void* top, switch_entry entry) noexcept {
  return detail::prepare_at(top, reinterpret_cast<void*>(entry), &start_frame);
}

/// As the other `prepare`, for an entry function that is reached by `transfer`.
PIRN_ALWAYS_INLINE peer prepare(void* top, transfer_entry entry) noexcept {
  return detail::prepare_at(top, reinterpret_cast<void*>(entry), detail::transfer_start);
}

/// Suspends the caller and resumes `to`, which must not be tagged. Each is passed as (pc, sp, fp), with four words of
/// values. On return `to` is the context that resumed the caller, and `values` are the words that it sent.
PIRN_ALWAYS_INLINE void transfer(peer& to, word (&values)[value_words]) noexcept {
  detail::transfer_tagging<0>(to, values);
}

/// As `transfer`, and the resumed side finds its peer, the caller, tagged.
PIRN_ALWAYS_INLINE void transfer_tagged(peer& to, word (&values)[value_words]) noexcept {
  detail::transfer_tagging<peer_tag>(to, values);
}

}  // namespace arch
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
