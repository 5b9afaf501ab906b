#include "pirn/detail/intrusive_list.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace {

struct element {
  int value;
  pirn::detail::list_links<element> links = {};
};
using list = pirn::detail::intrusive_list<element>;

std::vector<int> forwards(const list& of) {
  std::vector<int> found;
  for (const element& each : of) {
    found.push_back(each.value);
  }
  return found;
}
std::vector<int> backwards(const list& of) {
  std::vector<int> found;
  const element* last = of.front();
  while (last != nullptr && last->links.next != nullptr) {
    last = last->links.next;
  }
  for (; last != nullptr; last = last->links.previous) {
    found.insert(found.begin(), last->value);
  }
  return found;
}

TEST(intrusive_list, is_empty_at_first) {
  const list none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.front(), nullptr);
  EXPECT_EQ(forwards(none), std::vector<int>());
}

TEST(intrusive_list, has_what_a_vector_has) {
  constexpr int count = 8;
  std::mt19937 random(1);
  std::vector<element> all;
  for (int i = 0; i < count; ++i) {
    all.push_back({i});
  }
  list tested;
  std::vector<int> expected;
  for (int step = 0; step < 20000; ++step) {
    element& one = all[random() % count];
    const auto at = std::find(expected.begin(), expected.end(), one.value);
    if (at != expected.end()) {
      tested.remove(one);
      expected.erase(at);
    } else if (random() % 2 == 0) {
      tested.push_front(one);
      expected.insert(expected.begin(), one.value);
    } else {
      tested.push_back(one);
      expected.push_back(one.value);
    }
    ASSERT_EQ(forwards(tested), expected);
    ASSERT_EQ(backwards(tested), expected);
    ASSERT_EQ(tested.empty(), expected.empty());
  }
}

}  // namespace
