// Binds, finds and releases context values.
#include "pirn/fiber/context_value.hpp"

#include <new>

#include "pirn/detail/contract.hpp"
#include "pirn/fiber/detail/control.hpp"
#include "pirn/fiber/expert/wait_queue.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

void release(context_node* node) noexcept {
  while (node != nullptr && node->references.fetch_sub(1, platform::memory_order_acq_rel) == 1) {
    context_node* const older = node->older;
    node->destroy(node);
    node = older;
  }
}

context_node* alias_of(context_node* node) noexcept {
  auto* const alias = new (std::nothrow) context_node(node->key, [](context_node* self) noexcept {
    release(const_cast<context_node*>(self->holder));
    delete self;
  });
  if (alias != nullptr) {
    alias->holder = node->holder;
    alias->origin = node->origin;
    const_cast<context_node*>(node->holder)->references.fetch_add(1, platform::memory_order_relaxed);
  }
  return alias;
}

const context_node* find_context(const void* key) noexcept {
  const inherited_context* const here = inherited_context_here();
  const context_node* node = here != nullptr ? here->values : nullptr;
  while (node != nullptr && node->key != key) {
    node = node->older;
  }
  return node != nullptr ? node->holder : nullptr;
}

void bind_context(context_node* node) noexcept {
  agent& self = current_agent();
  inherited_context& here = inherited_context_of(self);
  node->origin = block_opened(self, reinterpret_cast<arch::word>(__builtin_frame_address(0)));
  node->older = here.values;
  here.values = node;
}

void unbind_context(context_node* node) noexcept {
  inherited_context& here = inherited_context_of(current_agent());
  context_node* const newest = here.values;
  if (newest == nullptr || newest->holder != node) {
    fail_contract("a binding of a context value ends before a newer one of its fiber");
  }
  publish_inheritors_of(*newest);
  block_closed(newest->origin);
  here.values = newest->older;
  if (newest->older != nullptr) {
    newest->older->references.fetch_add(1, platform::memory_order_relaxed);
  }
  release(newest);
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
