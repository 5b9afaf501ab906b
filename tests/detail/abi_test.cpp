// The ABI name: its parts, and the namespace that carries it.

#include "pirn/detail/abi.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <typeinfo>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
struct probe {};
PIRN_ABI_NAMESPACE_END
}  // namespace pirn

namespace {

const std::string name = PIRN_ABI_NAME;

bool says(const std::string& text) { return ("_" + name + "_").find("_" + text + "_") != std::string::npos; }

TEST(abi, name_has_a_version_and_four_parts_and_what_is_unusual) {
  EXPECT_EQ(name.substr(0, 3), "v1_");
  long unusual = 0;
#if defined(_GLIBCXX_DEBUG)
  EXPECT_TRUE(says("debug"));
  ++unusual;
#endif
#if defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
  EXPECT_TRUE(says("oldstrings"));
  ++unusual;
#endif
  EXPECT_EQ(std::count(name.begin(), name.end(), '_'), 4 + unusual);
}

TEST(abi, everything_lies_in_the_namespace_of_the_build) {
  EXPECT_NE(std::string(typeid(pirn::probe).name()).find(name), std::string::npos);
  static_assert(std::is_same_v<pirn::probe, pirn::PIRN_ABI::probe>);
}

TEST(abi, name_tells_the_sanitizer) {
#if defined(PIRN_ASAN)
  EXPECT_TRUE(says("asan"));
#elif defined(PIRN_TSAN)
  EXPECT_TRUE(says("tsan"));
#elif defined(PIRN_VALGRIND)
  EXPECT_TRUE(says("valgrind"));
#else
  EXPECT_TRUE(says("nosan"));
#endif
}

TEST(abi, name_tells_the_control_words) {
#if defined(PIRN_KEEP_FP_WORDS)
  EXPECT_TRUE(says("fpkept"));
#else
  EXPECT_TRUE(says("fpshared"));
#endif
}

TEST(abi, name_tells_the_standard_library) {
#if defined(_LIBCPP_VERSION)
  EXPECT_TRUE(says("libcxx"));
#else
  EXPECT_TRUE(says("libstdcxx"));
#endif
}

PIRN_NONE PIRN_NOINLINE long sum(long a, long b, long c, long d, long e, long f, long g) {
  return a + b + c + d + e + f + g;
}

TEST(abi, name_tells_the_convention_of_switching_functions) {
#if defined(PIRN_HAS_NONE) && defined(__clang__)
  EXPECT_TRUE(says("none"));
#elif defined(PIRN_HAS_NONE)
  EXPECT_TRUE(says("gnone"));
#else
  EXPECT_TRUE(says("plain"));
#endif
  EXPECT_EQ(sum(1, 2, 3, 4, 5, 6, 7), 28);
}

}  // namespace
