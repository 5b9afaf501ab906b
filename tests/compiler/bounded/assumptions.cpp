// The measured stack use of functions of the C and C++ libraries is at most the number that the plugin has for them.
#include <gtest/gtest.h>
#include <sched.h>
#include <time.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <string>

#include "pirn/fiber/detail/worker_stack.hpp"

namespace {

/// Returns how deep a call of it goes, in bytes from its return address on.
std::size_t depth_of(const std::function<void()>& body) {
  constexpr std::size_t bytes = std::size_t{64} << 10;
  constexpr unsigned char paint = 0xa5;
  const std::unique_ptr<unsigned char[]> memory(new unsigned char[bytes]);
  auto* const top = reinterpret_cast<unsigned char*>(reinterpret_cast<std::uintptr_t>(memory.get() + bytes) & ~15UL);
  std::memset(memory.get(), paint, bytes);
  pirn::detail::call_on(
      top, [](void* f) { (*static_cast<const std::function<void()>*>(f))(); },
      const_cast<void*>(static_cast<const void*>(&body)));
  const unsigned char* low = memory.get();
  while (low != top && *low == paint) {
    ++low;
  }
  return static_cast<std::size_t>(top - low);
}

char from[4096];
char to[4096];
volatile std::size_t large = sizeof from / 2;
volatile std::size_t small = 1;
void* kept = nullptr;

void allocate_all(const std::function<void*(std::size_t)>& take, const std::function<void(void*)>& give) {
  std::vector<void*> all;
  for (std::size_t size = 1; size < (std::size_t{8} << 20); size = size * 5 / 3 + 1) {
    for (int i = 0; i < 9; ++i) {
      all.push_back(take(size));
    }
  }
  for (void* const each : all) {
    give(each);
  }
}

TEST(Assumptions, CoverWhatIsMeasured) {
  std::size_t of_nothing = 0;
  for (int i = 0; i < 2; ++i) {
    of_nothing = depth_of([] {});
  }
  const std::map<std::string, std::function<void()>> cases = {
      {"memcpy", [] { std::memcpy(to, from, small), std::memcpy(to, from, large); }},
      {"memmove", [] { std::memmove(to, to + 1, small), std::memmove(to, to + 1, large); }},
      {"memset", [] { std::memset(to, 0, small), std::memset(to, 0, large); }},
      {"memcmp", [] { large = static_cast<std::size_t>(std::memcmp(to, from, large)) * 0 + large; }},
      {"strlen", [] { small = std::strlen(from) * 0 + small; }},
      {"sched_yield", [] { sched_yield(); }},
      {"clock_gettime",
       [] {
         timespec now;
         clock_gettime(CLOCK_MONOTONIC, &now);
       }},
      {"std::chrono::_V2::steady_clock::now()", [] { static_cast<void>(std::chrono::steady_clock::now()); }},
      {"malloc", [] { kept = std::malloc(large); }},
      {"free", [] { std::free(kept); }},
      {"operator new(unsigned long)", [] { kept = ::operator new(large); }},
      {"operator delete(void*)", [] { ::operator delete(kept); }},
      {"operator delete(void*, unsigned long)", [] { kept = nullptr, ::operator delete(kept, large); }},
  };
  // These go deeper where they ask the kernel, so their use is measured over many sizes.
  const std::map<std::string, std::size_t> deep = {
      {"malloc", depth_of([] { allocate_all([](std::size_t n) { return std::malloc(n); }, std::free); })},
  };
  std::map<std::string, std::size_t> told;
  std::ifstream file(PIRN_STACK_ASSUMPTIONS_FILE);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string keyword;
    std::size_t bytes = 0;
    if (words >> keyword >> bytes && keyword == "bytes") {
      std::string name;
      std::getline(words >> std::ws, name);
      told[name] = bytes;
    }
  }
  EXPECT_GT(told.size(), 5u);
  for (const auto& [name, bytes] : told) {
    const auto at = cases.find(name);
    ASSERT_NE(at, cases.end()) << "nothing measures " << name;
    std::size_t used = depth_of(at->second) - of_nothing;
    if (deep.contains(name)) {
      used = std::max(used, deep.at(name) - of_nothing);
    }
    std::printf("%s: %zu of %zu\n", name.c_str(), used, bytes);
    EXPECT_LE(used, bytes) << name;
  }
}

}  // namespace
