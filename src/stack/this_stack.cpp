// Finds the stack that the caller runs on: among the slabs of the pools, or as that of the OS thread.
#include "pirn/stack/this_stack.hpp"

#include <pthread.h>

#include <cstdint>

#include "stack/slab_registry.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace this_stack {

namespace {

/// Returns the stack of the OS thread. That of a main thread may have been allowed to become larger since the last
/// call.
stack of_thread() noexcept {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) {
    return {};
  }
  void* low = nullptr;
  std::size_t size = 0;
  pthread_attr_getstack(&attributes, &low, &size);
  pthread_attr_destroy(&attributes);
  const auto top = (reinterpret_cast<std::uintptr_t>(low) + size) & ~std::uintptr_t{15};
  return {low, reinterpret_cast<void*>(top)};
}

}  // namespace

stack bounds() noexcept {
  const void* const here = __builtin_frame_address(0);
  detail::slot_site site;
  if (detail::find_slot(here, site)) {
    return {reinterpret_cast<void*>(site.limit), reinterpret_cast<void*>(site.top)};
  }
  static thread_local stack known;
  if (!known.contains(here)) {
    known = of_thread();
  }
  return known.contains(here) ? known : stack();
}

stack bounds_if_linked() noexcept { return bounds(); }

}  // namespace this_stack
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
