// The exchange of two images of one size through a stack.
#include "pirn/stack/detail/image_copy.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstddef>
#include <random>
#include <vector>

namespace {

using bytes = std::vector<char>;
namespace detail = pirn::detail;

bytes some(std::mt19937& random, std::size_t size) {
  bytes made(size);
  for (char& each : made) {
    each = static_cast<char>(random());
  }
  return made;
}

/// Exchanges images of all sizes, with `changes` changed bytes, at all alignments of words, and compares with two
/// copies.
template <typename Exchange>
void compare(Exchange exchange) {
  constexpr std::size_t first = 256;
  constexpr std::size_t end = 3072;
  std::mt19937 random(1);
  for (std::size_t size = first; size < end; size += 8) {
    bytes stack = some(random, end + 64);
    bytes out(stack);
    const bytes in = some(random, end + 64);
    char* const on_stack = stack.data() + random() % 8 * 8;
    const std::size_t at = random() % 8 * 8;
    std::memcpy(out.data() + at, on_stack, size);
    const bytes untouched(out);
    for (unsigned changes = random() % 4; changes != 0; --changes) {
      on_stack[random() % size] ^= 1;
    }
    const bytes left(on_stack, on_stack + size);
    exchange(on_stack, out.data() + at, in.data(), size);
    ASSERT_EQ(bytes(out.data() + at, out.data() + at + size), left) << size;
    ASSERT_EQ(bytes(on_stack, on_stack + size), bytes(in.data(), in.data() + size)) << size;
    ASSERT_TRUE(std::equal(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(at), untouched.begin()));
    ASSERT_TRUE(std::equal(out.begin() + static_cast<std::ptrdiff_t>(at + size), out.end(),
                           untouched.begin() + static_cast<std::ptrdiff_t>(at + size)));
  }
}

TEST(image_exchange, is_two_copies) {
  compare([](char* stack, char* out, const char* in, std::size_t size) {
    detail::exchange_large_images(stack, out, in, size);
  });
}

TEST(image_exchange, is_two_copies_on_any_processor) {
  compare([](char* stack, char* out, const char* in, std::size_t size) {
    detail::exchange_lines(stack, out, in, size, in);
  });
}

/// Images that begin with whole lines.
template <typename Exchange>
void exchange_unchanged(Exchange exchange) {
  constexpr std::size_t page = 4096;
  constexpr std::size_t size = 2048;
  void* const mapped = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  std::mt19937 random(2);
  bytes stack = some(random, size);
  const bytes in = some(random, size);
  std::memcpy(mapped, stack.data(), size);
  ASSERT_EQ(mprotect(mapped, page, PROT_READ), 0);
  exchange(stack.data(), static_cast<char*>(mapped), in.data(), size);
  EXPECT_EQ(stack, in);
  munmap(mapped, page);
}

TEST(image_exchange, does_not_write_lines_that_are_as_they_were) {
  exchange_unchanged([](char* stack, char* out, const char* in, std::size_t size) {
    detail::exchange_large_images(stack, out, in, size);
  });
  exchange_unchanged([](char* stack, char* out, const char* in, std::size_t size) {
    detail::exchange_lines(stack, out, in, size, in);
  });
}

}  // namespace
