#include "pirn/fiber/timer.hpp"

namespace pirn::inline PIRN_ABI {

timer* timer_queue::meld(timer* a, timer* b) noexcept {
  if (a == nullptr) {
    return b;
  }
  if (b == nullptr) {
    return a;
  }
  if (b->when < a->when) {
    timer* const smaller = b;
    b = a;
    a = smaller;
  }
  b->sibling = a->child;
  if (a->child != nullptr) {
    a->child->back = b;
  }
  b->back = a;
  a->child = b;
  return a;
}

timer* timer_queue::merge_pairs(timer* first) noexcept {
  // Two passes without recursion: pairs from left to right onto a list, then that list into one heap.
  timer* pairs = nullptr;
  while (first != nullptr) {
    timer* const a = first;
    timer* const b = a->sibling;
    first = b != nullptr ? b->sibling : nullptr;
    a->sibling = a->back = nullptr;
    if (b != nullptr) {
      b->sibling = b->back = nullptr;
    }
    timer* const pair = meld(a, b);
    pair->sibling = pairs;
    pairs = pair;
  }
  timer* result = nullptr;
  while (pairs != nullptr) {
    timer* const rest = pairs->sibling;
    pairs->sibling = nullptr;
    result = meld(result, pairs);
    pairs = rest;
  }
  return result;
}

void timer_queue::insert(timer& t) noexcept {
  t.child = t.sibling = t.back = nullptr;
  t.armed = true;
  root_ = meld(root_, &t);
}

void timer_queue::pop() noexcept {
  timer* const top = root_;
  root_ = merge_pairs(top->child);
  top->child = nullptr;
  top->armed = false;
}

void timer_queue::cancel(timer& t) noexcept {
  if (!t.armed) {
    return;
  }
  if (&t == root_) {
    pop();
    return;
  }
  (t.back->child == &t ? t.back->child : t.back->sibling) = t.sibling;
  if (t.sibling != nullptr) {
    t.sibling->back = t.back;
  }
  root_ = meld(root_, merge_pairs(t.child));
  t.child = nullptr;
  t.armed = false;
}

void timer_queue::fire(platform::time_point now) noexcept {
  while (root_ != nullptr && root_->when <= now) {
    timer& due = *root_;
    pop();
    // The waiter resumes on this worker, so its node outlives this call.
    if (due.wake.claim(wake_reason::timed_out)) {
      detail::make_runnable(due.wake.who(), true);
    }
  }
}

}  // namespace pirn::inline PIRN_ABI
