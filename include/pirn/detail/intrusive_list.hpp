// A doubly linked list whose elements hold the links.
#pragma once

#include "pirn/detail/abi.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The links of an element; its member `links`.
template <class T>
struct list_links {
  T* next = nullptr;
  T* previous = nullptr;
};

/// A list of elements. An element is in one list at a time, which needs no memory for it and does not own it. Not
/// thread-safe.
template <class T>
class intrusive_list {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  /// Returns the first element, or null.
  [[nodiscard]] T* front() const noexcept { return first_; }

  void push_front(T& added) noexcept {
    added.links = {first_, nullptr};
    (first_ != nullptr ? first_->links.previous : last_) = &added;
    first_ = &added;
  }
  void push_back(T& added) noexcept {
    added.links = {nullptr, last_};
    (last_ != nullptr ? last_->links.next : first_) = &added;
    last_ = &added;
  }
  /// Removes an element of this list. O(1).
  void remove(T& removed) noexcept {
    const list_links<T> at = removed.links;
    (at.previous != nullptr ? at.previous->links.next : first_) = at.next;
    (at.next != nullptr ? at.next->links.previous : last_) = at.previous;
  }

  /// Visits the elements from front to back. The present one may not be removed meanwhile.
  class iterator {
   public:
    explicit iterator(T* at) noexcept : at_(at) {}
    T& operator*() const noexcept { return *at_; }
    iterator& operator++() noexcept {
      at_ = at_->links.next;
      return *this;
    }
    bool operator==(const iterator& other) const noexcept { return at_ == other.at_; }

   private:
    T* at_;
  };
  [[nodiscard]] iterator begin() const noexcept { return iterator(first_); }
  [[nodiscard]] iterator end() const noexcept { return iterator(nullptr); }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
