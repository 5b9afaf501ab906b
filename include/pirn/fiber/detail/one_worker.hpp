// What makes a primitive local: where others have a lock, the mark of the one worker whose fibers may use it.
#pragma once

#include "pirn/detail/platform.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// In the place of a lock: fibers of one worker exclude each other as long as none suspends. Costs a comparison.
class one_worker {
 public:
  /// The first call makes the caller's worker the object's. Aborts on any other worker and on a plain thread.
  PIRN_ALWAYS_INLINE void lock() const noexcept {
    if (platform::current_worker() != home_) [[unlikely]] {
      settle();
    }
  }
  PIRN_ALWAYS_INLINE void unlock() const noexcept {}

  /// A wait begins: aborts in a migratable fiber, which another worker might resume.
  void refuse_migratable() const noexcept;
  /// Says what was done wrong with the object that this is in, and aborts.
  [[noreturn]] PIRN_ENDS_PROCESS void refuse(const char* what) const noexcept;

 private:
  void settle() const noexcept;

  static constexpr char nobody = 0;
  mutable const void* home_ = &nobody;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
