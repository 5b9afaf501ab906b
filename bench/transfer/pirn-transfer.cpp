// A continuation of two values, resumed by either side in turn: pirn/context alone.
#include "pirn/context/continuation.hpp"

#include <memory>

#include "transfer.hpp"

namespace {

using ping_pong = pirn::continuation<std::uint64_t, std::uint64_t>;

/// The bench's own memory: the cost of a stack is not measured here.
struct memory {
  std::byte* begin;
  std::size_t size;
  [[nodiscard]] void* limit() const { return begin; }
  [[nodiscard]] void* top() const { return begin + size; }
};

ping_pong::finished other(ping_pong back, std::uint64_t first, std::uint64_t second) {
  for (;;) {
    const bench::two sent = bench::step({first, second});
    std::tie(first, second) = back.exchange(sent.first, sent.second);
  }
}

ping_pong peer;

[[gnu::noinline]] bench::two round_trips(std::uint64_t count, bench::two values) {
  ping_pong to = std::move(peer);
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto [first, second] = to.exchange(values.first, values.second);
    values = bench::step({first, second});
  }
  peer = std::move(to);
  return values;
}

}  // namespace

int main() {
  const std::uint64_t size = bench::input("STACK");
  const auto stack = std::make_unique_for_overwrite<std::byte[]>(size);
  peer = ping_pong(memory{stack.get(), size}, [](ping_pong back, std::uint64_t first, std::uint64_t second) {
    return other(std::move(back), first, second);
  });
  bench::transfer_row("pirn-transfer", round_trips);
  peer = ping_pong();  // the other side is unwound
}
