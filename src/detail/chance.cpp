// Decides by chance: a random number generator for each thread.
#include "detail/chance.hpp"

#include "pirn/detail/platform.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace platform {

namespace {

struct numbers_of_thread : random {
  numbers_of_thread() noexcept : random(random_seed()) {}
};

}  // namespace

// Not inlined, not even by link-time optimization: the address of a thread-local variable must not be kept across a
// suspension.
[[gnu::noinline]] std::size_t chance(std::size_t count) noexcept {
  return static_cast<std::size_t>(per_thread<numbers_of_thread>::here().next() % count);
}

}  // namespace platform
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
