// The part of a primitive that makes it local: in place of a lock, the mark of the one worker whose fibers may use it.
#pragma once

#include "pirn/detail/platform.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// Takes the place of a lock: fibers of one worker exclude each other as long as no fiber suspends. Costs a comparison.
class one_worker {
 public:
  /// Makes the caller's worker the object's, at the first call. Aborts on any other worker and on a plain thread.
  PIRN_ALWAYS_INLINE void lock() const noexcept {
    if (platform::current_worker() != home_) [[unlikely]] {
      claim_for_worker();
    }
  }
  PIRN_ALWAYS_INLINE void unlock() const noexcept {}

  /// Called when a wait begins: aborts in a migratable fiber, which another worker might resume.
  void refuse_migratable() const noexcept;
  /// Reports a misuse of the object that this is in, and aborts.
  [[noreturn]] PIRN_ENDS_PROCESS void fail_misuse(const char* what) const noexcept;

 private:
  void claim_for_worker() const noexcept;

  static constexpr char nobody = 0;
  mutable const void* home_ = &nobody;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
