// Stacks: values, errors, high-water marks and trimming.

#include "pirn/stack/stack.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "stack/support.hpp"

namespace {

using pirn::stack;
using pirn::stack_error;

TEST(stack, names_memory_and_is_nothing_by_default) {
  alignas(16) char room[16 + 256];
  char* const memory = room + 16;
  EXPECT_FALSE(stack{});
  const stack value(memory, memory + 256, memory, 7);
  EXPECT_TRUE(value);
  EXPECT_EQ(value.size(), 256u);
  EXPECT_EQ(value.owner(), memory);
  EXPECT_EQ(value.slot(), 7u);
  EXPECT_TRUE(value.contains(memory));
  EXPECT_TRUE(value.contains(memory + 255));
  EXPECT_FALSE(value.contains(memory + 256));
  EXPECT_FALSE(value.contains(memory - 1));
}

TEST(stack, errors_name_the_limit_and_what_to_do) {
  const auto text = [](stack_error error) { return std::string(to_string(error)); };
  EXPECT_NE(text(stack_error::address_space).find("RLIMIT_AS"), std::string::npos);
  EXPECT_NE(text(stack_error::mapping_limit).find("vm.max_map_count"), std::string::npos);
  EXPECT_NE(text(stack_error::pool_limit).find("max_stacks"), std::string::npos);
  EXPECT_NE(text(stack_error::guard_refused).find("6.13"), std::string::npos);
  EXPECT_NE(text(stack_error::out_of_memory).find("memory"), std::string::npos);
  EXPECT_NE(text(stack_error::invalid_size).find("size"), std::string::npos);
}

TEST(stack, errors_are_error_codes) {
  const std::error_code code = stack_error::mapping_limit;
  EXPECT_STREQ(code.category().name(), "pirn.stack");
  EXPECT_EQ(code.message(), to_string(stack_error::mapping_limit));
  EXPECT_TRUE(code == std::errc::not_enough_memory);
  EXPECT_TRUE(make_error_code(stack_error::invalid_size) == std::errc::invalid_argument);
  EXPECT_TRUE(make_error_code(stack_error::guard_refused) == std::errc::not_supported);
  EXPECT_FALSE(make_error_code(stack_error::none));
}

TEST(stack, a_result_is_true_when_there_is_a_stack) {
  EXPECT_TRUE(pirn::stack_result{});
  EXPECT_FALSE((pirn::stack_result{stack{}, stack_error::pool_limit}));
}

/// Any allocator of memory can be a stack allocator.
class heap_stacks {
 public:
  pirn::stack_result allocate(std::size_t size) noexcept {
    void* const memory = ::operator new(size, std::align_val_t{16}, std::nothrow);
    if (memory == nullptr) {
      return {stack{}, stack_error::out_of_memory};
    }
    return {stack{memory, static_cast<char*>(memory) + size}, stack_error::none};
  }
  void deallocate(stack value) noexcept { ::operator delete(value.limit(), std::align_val_t{16}); }
};
static_assert(pirn::stack_allocator<heap_stacks>);
class throwing_stacks {
 public:
  pirn::stack_result allocate(std::size_t);
  void deallocate(stack) noexcept;
};
static_assert(!pirn::stack_allocator<throwing_stacks>, "a fiber that cannot have a stack is told by a value");

TEST(stack, code_runs_on_a_stack_of_any_allocator) {
  heap_stacks heap;
  const pirn::stack_result got = heap.allocate(pirn::default_stack_size);
  ASSERT_TRUE(got);
  const void* seen = nullptr;
  stack_test::run_on(got.value, [&] { seen = __builtin_frame_address(0); });
  EXPECT_TRUE(got.value.contains(seen));
  heap.deallocate(got.value);
}

TEST(stack, high_water_is_the_deepest_page_touched) {
  const std::size_t page = stack_test::page();
  constexpr std::size_t pages = 2000;  // more than one chunk of the walk
  void* const range =
      mmap(nullptr, pages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(range, MAP_FAILED);
  madvise(range, pages * page, MADV_NOHUGEPAGE);
  char* const bottom = static_cast<char*>(range);
  const stack value(bottom, bottom + pages * page - 256);
  EXPECT_EQ(high_water(value), 0u);
  EXPECT_EQ(resident_bytes(value), 0u);

  bottom[pages * page - 300] = 1;
  EXPECT_EQ(high_water(value), page - 256);
  bottom[5 * page + 17] = 1;
  EXPECT_EQ(high_water(value), (pages - 5) * page - 256);
  EXPECT_EQ(resident_bytes(value), 2 * page);
  bottom[0] = 1;
  EXPECT_EQ(high_water(value), value.size());
  munmap(range, pages * page);
}

TEST(stack, high_water_of_a_huge_stack_is_found_near_its_top) {
  constexpr std::size_t size = std::size_t{64} << 30;
  void* const range = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(range, MAP_FAILED);
  madvise(range, size, MADV_NOHUGEPAGE);
  char* const bottom = static_cast<char*>(range);
  const stack value(bottom, bottom + size);
  constexpr std::size_t gap = std::size_t{10} << 20;
  bottom[size - 1] = 1;
  bottom[size - gap] = 1;
  EXPECT_EQ(high_water(value), gap);
  EXPECT_EQ(resident_bytes(value), 2 * stack_test::page());
  munmap(range, size);
}

TEST(stack, trim_gives_back_the_pages_below_what_is_needed) {
  const std::size_t page = stack_test::page();
  void* const range = mmap(nullptr, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(range, MAP_FAILED);
  char* const bottom = static_cast<char*>(range);
  std::memset(bottom, 1, 8 * page);
  const stack value(bottom + 100, bottom + 7 * page + 128);  // others have the rest of its first and last page
  EXPECT_TRUE(trim(value, bottom + 3 * page + 17));
  EXPECT_EQ(bottom[0], 1);
  EXPECT_EQ(bottom[page], 0) << "the kernel gives zeroed pages";
  EXPECT_EQ(bottom[3 * page - 1], 0);
  EXPECT_EQ(bottom[3 * page], 1) << "in the page of the lowest byte that is needed";
  EXPECT_TRUE(trim(value, bottom + 8 * page)) << "the whole stack";
  EXPECT_EQ(bottom[6 * page], 0);
  EXPECT_EQ(bottom[7 * page], 1);
  EXPECT_TRUE(trim(value, bottom + page)) << "there is no whole page";
  ASSERT_EQ(syscall(SYS_mlock, bottom + page, page), 0) << "mlock itself does nothing under a sanitizer";
  EXPECT_FALSE(trim(value, value.top())) << "locked memory stays";
  munmap(range, 8 * page);
}

}  // namespace
