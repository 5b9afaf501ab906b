// Values that a fiber passes on to its children, for instance the number of the request that it serves.
#pragma once

#include <utility>

#include "pirn/detail/platform.hpp"
#include "pirn/fiber/detail/block_origin.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

/// A bound value. Immutable and reference-counted: fibers that run at the same time share a tail of their lists.
struct context_node {
  context_node(const void* what, void (*end)(context_node*) noexcept) noexcept : key(what), destroy(end) {}
  platform::atomic<int> references{1};
  const void* key;
  void (*destroy)(context_node*) noexcept;
  context_node* older = nullptr;
  const context_node* holder = this;  ///< the node with the value: another one if the value is in several lists
  block_origin origin;                ///< where the value was bound
};
/// Returns a node with the value of another, for another list. Null if there is no memory.
context_node* alias_of(context_node* node) noexcept;

/// Releases a reference, and destroys the nodes that lose their last one.
void release(context_node* node) noexcept;
/// Returns the caller's newest node for `key`, or null. O(number of values bound).
const context_node* find_context(const void* key) noexcept;
/// Puts `node` in front of the caller's list and takes over its reference.
void bind_context(context_node* node) noexcept;
/// Removes the caller's newest node, which must be `node`.
void unbind_context(context_node* node) noexcept;

}  // namespace detail

/// A key for values of one type, usually static. A value is bound for as long as a `binding` exists. The fiber (or
/// thread) that bound it sees it, and so do the children that it spawns in scopes meanwhile, for their lifetime; fibers
/// spawned outside of scopes do not. The key must outlive its bindings. Any thread or fiber may use it.
template <class T>
class context_value {
  struct node : detail::context_node {
    template <class... Arguments>
    explicit node(const void* what, Arguments&&... arguments)
        : context_node(what, [](context_node* self) noexcept { delete static_cast<node*>(self); }),
          value(std::forward<Arguments>(arguments)...) {}
    const T value;
  };

 public:
  context_value() noexcept = default;
  context_value(const context_value&) = delete;
  context_value& operator=(const context_value&) = delete;

  /// Returns the value bound for the caller, or null. Valid as long as the binding, or as the child that inherited it.
  /// O(number of values bound).
  [[nodiscard]] const T* get() const noexcept {
    const detail::context_node* const found = detail::find_context(this);
    return found != nullptr ? &static_cast<const node*>(found)->value : nullptr;
  }

  /// Binds a value made from `arguments` for the lifetime of this object, in front of an older value. The fiber that
  /// began a binding ends it, in reverse order (aborts if it is not the newest). Throws std::bad_alloc.
  class [[nodiscard]] binding {
   public:
    /// Binds a new value, made of `arguments`, to `key`.
    template <class... Arguments>
    explicit binding(const context_value& key, Arguments&&... arguments)
        : node_(new node(&key, std::forward<Arguments>(arguments)...)) {
      detail::bind_context(node_);
    }
    binding(const binding&) = delete;
    binding& operator=(const binding&) = delete;
    ~binding() { detail::unbind_context(node_); }

   private:
    node* node_;
  };
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
