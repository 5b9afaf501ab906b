#include "pirn/fiber/context_value.hpp"

#include <cstdio>
#include <cstdlib>

#include "pirn/fiber/detail/control.hpp"
#include "pirn/fiber/wait_queue.hpp"

namespace pirn::inline PIRN_ABI::detail {

void release(context_node* node) noexcept {
  while (node != nullptr && node->references.fetch_sub(1, platform::memory_order_acq_rel) == 1) {
    context_node* const older = node->older;
    node->destroy(node);
    node = older;
  }
}

const context_node* find_context(const void* key) noexcept {
  const surroundings* const here = surroundings_here();
  const context_node* node = here != nullptr ? here->values : nullptr;
  while (node != nullptr && node->key != key) {
    node = node->older;
  }
  return node;
}

void bind_context(context_node* node) noexcept {
  surroundings& here = surroundings_of(current_agent());
  node->older = here.values;
  here.values = node;
}

void unbind_context(context_node* node) noexcept {
  surroundings& here = surroundings_of(current_agent());
  if (here.values != node) {
    std::fputs("pirn: a binding of a context value ends that is not the newest one of its fiber\n", stderr);
    std::abort();
  }
  here.values = node->older;
  if (node->older != nullptr) {
    node->older->references.fetch_add(1, platform::memory_order_relaxed);
  }
  release(node);
}

}  // namespace pirn::inline PIRN_ABI::detail
