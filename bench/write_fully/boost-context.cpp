// Boost.Context's fibers and a minimal scheduler: a ring, round robin.
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>

#include "write_fully.hpp"

namespace {

namespace ctx = boost::context;

struct member {
  ctx::fiber fiber;
  member* next = this;
  member* previous = this;
};

/// The ring: the main program and every sender that has not ended.
member outside;
member* running = &outside;
bool ready = false;

/// Keeps the state of the member that has resumed the running one: the one in front of it, unless that has ended.
void arrive(ctx::fiber&& from) {
  if (from) {
    running->previous->fiber = std::move(from);
  }
}

void yield() {
  running = running->next;
  arrive(std::move(running->fiber).resume());
}

void add(member& one) {
  one.next = &outside;
  one.previous = outside.previous;
  outside.previous->next = &one;
  outside.previous = &one;
}

/// Removes the running member and returns the next one.
ctx::fiber leave() {
  running->previous->next = running->next;
  running->next->previous = running->previous;
  running = running->next;
  return std::move(running->fiber);
}

void wait_for_ready() {
  if (!ready) {
    yield();
  }
}

std::size_t send_some(bench::sink& to, const std::byte* data, std::size_t size) {
  wait_for_ready();
  return bench::offer(to, data, size);
}

[[gnu::noinline]] std::size_t write_fully(bench::sink& to, const std::byte* data, std::size_t size) {
  std::size_t sent = 0;
  while (sent < size) {
    sent += send_some(to, data + sent, size - sent);
  }
  return sent;
}

void send_all(std::vector<bench::sink>& sinks, const bench::payload& whole) {
  static ctx::fixedsize_stack stacks(bench::input("STACK"));
  std::vector<member> senders(sinks.size());
  for (std::size_t i = 0; i < sinks.size(); ++i) {
    add(senders[i]);
    senders[i].fiber = ctx::fiber(std::allocator_arg, stacks, [&to = sinks[i], &whole](ctx::fiber&& from) {
      arrive(std::move(from));
      bench::check(write_fully(to, whole.data(), whole.size()) == whole.size(), "the sum of the steps is right");
      return leave();
    });
  }
  while (outside.next != &outside) {
    yield();
  }
}

}  // namespace

int main() { bench::write_fully_rows("boost-context", ready, send_all, "a ring of fibers, round robin"); }
