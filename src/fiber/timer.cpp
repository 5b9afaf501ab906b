#include "pirn/fiber/timer.hpp"

namespace pirn::inline PIRN_ABI {

namespace {

/// Puts the later of two trees under the other, which it returns.
timer* link(timer* a, timer* b) noexcept {
  if (b->when < a->when) {
    timer* const later = a;
    a = b;
    b = later;
  }
  b->parent = a;
  if (timer* const first = a->child) {
    first->parent = nullptr;
    b->next = first;
    b->previous = first->previous;
    first->previous->next = b;
    first->previous = b;
  } else {
    b->next = b->previous = b;
  }
  a->child = b;
  return a;
}

}  // namespace

void timer_queue::add_roots(timer* ring) noexcept {
  if (roots_ == nullptr) {
    roots_ = ring;
    return;
  }
  timer* const last = ring->previous;
  roots_->previous->next = ring;
  ring->previous = roots_->previous;
  last->next = roots_;
  roots_->previous = last;
}

void timer_queue::take_out(timer& t) noexcept {
  if (timer* const below = t.child) {
    below->parent = nullptr;
    t.child = nullptr;
    add_roots(below);
  }
  timer* const other = t.next != &t ? t.next : nullptr;
  if (other != nullptr) {
    other->previous = t.previous;
    t.previous->next = other;
  }
  if (t.parent != nullptr) {
    t.parent->child = other;
    if (other != nullptr) {
      other->parent = t.parent;
    }
    t.parent = nullptr;
  } else if (roots_ == &t) {
    roots_ = other;
  }
  t.next = nullptr;
}

void timer_queue::merge_roots() noexcept {
  if (roots_ == nullptr || roots_->next == roots_) {
    return;
  }
  // Two passes without recursion: pairs from left to right onto a list, then that list into one tree.
  roots_->previous->next = nullptr;
  timer* pairs = nullptr;
  for (timer* rest = roots_; rest != nullptr;) {
    timer* const a = rest;
    timer* const b = a->next;
    rest = b != nullptr ? b->next : nullptr;
    timer* const pair = b != nullptr ? link(a, b) : a;
    pair->next = pairs;
    pairs = pair;
  }
  timer* result = pairs;
  for (timer* rest = pairs->next; rest != nullptr;) {
    timer* const pair = rest;
    rest = pair->next;
    result = link(result, pair);
  }
  result->next = result->previous = result;
  roots_ = result;
}

platform::time_point timer_queue::next() noexcept {
  merge_roots();
  return roots_ != nullptr ? roots_->when : platform::never;
}

void timer_queue::insert(timer& t) noexcept {
  t.child = t.parent = nullptr;
  t.next = t.previous = &t;
  add_roots(&t);
}

void timer_queue::cancel(timer& t) noexcept {
  if (t.armed()) {
    take_out(t);
  }
}

void timer_queue::fire(platform::time_point now) noexcept {
  while (roots_ != nullptr && next() <= now) {
    timer& due = *roots_;
    take_out(due);
    if (due.wake.who() == nullptr) {
      auto& calls = static_cast<call_timer&>(due);
      calls.call(calls);
    } else if (due.wake.claim(wake_reason::timed_out)) {
      // The waiter resumes on this worker, so its node outlives this call.
      detail::make_runnable(due.wake.who(), true);
    }
  }
}

}  // namespace pirn::inline PIRN_ABI
