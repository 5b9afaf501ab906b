// Values that a fiber hands on to its children, for instance the number of the request that it works on.
#pragma once

#include <utility>

#include "pirn/detail/platform.hpp"
#include "pirn/fiber/detail/block_origin.hpp"
#include "pirn/fiber/detail/cxx23.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {

/// A value that is bound. Immutable and counted: fibers that run at the same time share a tail of their lists.
struct context_node {
  context_node(const void* what, void (*end)(context_node*) noexcept) noexcept : key(what), destroy(end) {}
  platform::atomic<int> references{1};
  const void* key;
  void (*destroy)(context_node*) noexcept;
  context_node* older = nullptr;
  const context_node* holder = this;  ///< of the value: another one where that is in several lists
  block_origin origin;                ///< of the binding
};
/// One with the value of another, for another list. Null if there is no memory.
context_node* alias_of(context_node* node) noexcept;

/// Gives a reference back, and those that this was the last to need.
void release(context_node* node) noexcept;
/// The caller's newest one for `key`, or null. O(what is bound).
const context_node* find_context(const void* key) noexcept;
/// Puts a node, whose reference it takes, in front of the caller's.
void bind_context(context_node* node) noexcept;
/// Takes the caller's newest one, which must be `node`, away.
void unbind_context(context_node* node) noexcept;

}  // namespace detail

/// A key for values of one type, usually static. A value is bound for as long as a `binding` exists, seen by the fiber
/// (or thread) that bound it and by the children that it spawns in scopes meanwhile, which keep it for their lifetime;
/// not by fibers spawned outside of scopes. The key must outlive its bindings. Any thread or fiber may use it.
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

  /// What is bound for the caller, or null. Valid as long as the binding or the child that inherited it. O(number of
  /// values bound).
  [[nodiscard]] const T* get() const noexcept {
    const detail::context_node* const found = detail::find_context(this);
    return found != nullptr ? &static_cast<const node*>(found)->value : nullptr;
  }

  /// Binds a value made of `arguments` for its lifetime, in front of an older one. Ended by the fiber that began it, in
  /// reverse order (a binding that is not the newest aborts). Throws std::bad_alloc.
  class [[nodiscard]] binding {
   public:
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
