// The contract of the primitive switches, beyond the registers that a switch must keep. The conformance program checks
// those with many compilers and options.

#include "pirn/context/arch.hpp"

#include <gtest/gtest.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <memory>
#include <type_traits>
#include <vector>

namespace {

using pirn::arch::context;
using pirn::arch::peer;
using pirn::arch::word;
namespace arch = pirn::arch;

// A function that leaves its stack and never returns to it. AddressSanitizer is not informed of that here.
#define UNCHECKED __attribute__((no_sanitize("address")))

class memory {
 public:
  char* top() { return bytes_.get() + size; }
  char* bytes() { return bytes_.get(); }
  static constexpr std::size_t size = std::size_t{64} * 1024;

 private:
  std::unique_ptr<char[]> bytes_ = std::make_unique<char[]>(size);
};

TEST(arch, context_is_three_words) {
  EXPECT_EQ(sizeof(context), 3 * sizeof(void*));
  EXPECT_TRUE(std::is_trivially_copyable_v<context>);
  EXPECT_TRUE((std::is_same_v<context, peer>));
  EXPECT_GE(arch::value_words, 4U);
#if defined(__x86_64__)
  EXPECT_GE(arch::red_zone, 128U);
#elif defined(__powerpc64__)
  EXPECT_GE(arch::red_zone, 288U + 2 * sizeof(void*));
#endif
}

void never_run(word, word) {}

TEST(arch, prepare_writes_from_sp_to_the_top) {
  memory stack;
  for (std::size_t slack = 0; slack < 16; ++slack) {
    std::fill_n(stack.bytes(), memory::size, 'x');
    char* const top = stack.top() - slack;
    const context fresh = arch::prepare(top, &never_run);
    auto* const rounded = reinterpret_cast<char*>(reinterpret_cast<word>(top) & ~word{15});
    auto* const sp = static_cast<char*>(fresh.sp);
    EXPECT_GE(sp, rounded - 64);
    EXPECT_LT(sp, rounded);
    EXPECT_EQ(fresh.fp, nullptr);
    EXPECT_EQ(std::count(stack.bytes(), sp, 'x'), sp - stack.bytes());
    for (char* above = rounded; above < stack.top(); ++above) {
      EXPECT_EQ(*above, 'x');
    }
  }
}

struct ring {
  static constexpr int size = 10;
  std::array<memory, size> stacks;
  std::array<context, size + 1> contexts;  // the last is the test's own
  std::vector<int> visits;
};

PIRN_NOINLINE void run_in_ring(word first, word index) {
  auto& shared = *reinterpret_cast<ring*>(first);
  for (int turn = 0; turn < 3; ++turn) {
    shared.visits.push_back(static_cast<int>(index));
    word one = first, two = index + 1;
    arch::switch_to(shared.contexts[index], shared.contexts[index + 1], one, two);
  }
  word one = first, two = 0;
  arch::switch_to(shared.contexts[index], shared.contexts[ring::size], one, two);
}

TEST(arch, contexts_switch_in_a_ring) {
  auto shared = std::make_unique<ring>();
  shared->visits.reserve(std::size_t{3} * ring::size);
  for (std::size_t i = 0; i < ring::size; ++i) {
    shared->contexts[i] = arch::prepare(shared->stacks[i].top(), &run_in_ring);
  }
  for (int turn = 0; turn < 3; ++turn) {
    word first = reinterpret_cast<word>(shared.get()), second = 0;
    arch::switch_to(shared->contexts[ring::size], shared->contexts[0], first, second);
    EXPECT_EQ(second, static_cast<word>(ring::size));
  }
  ASSERT_EQ(shared->visits.size(), 3U * ring::size);
  for (int i = 0; i < 3 * ring::size; ++i) {
    EXPECT_EQ(shared->visits[static_cast<std::size_t>(i)], i % ring::size);
  }
}

TEST(arch, a_switch_to_oneself_returns_at_once) {
  context self;
  alignas(64) volatile word kept = 7;
  for (word i = 0; i < 3; ++i) {
    word one = i, two = i + 10;
    arch::switch_to(self, self, one, two);
    EXPECT_EQ(one, i);
    EXPECT_EQ(two, i + 10);
    EXPECT_EQ(kept, 7U);
  }
}

struct end_state {
  memory first, second;
  context test;
  word sum = 0;
  int frames = 0;
};

UNCHECKED PIRN_NOINLINE void end_with_switch_last(word shared_word, word value) {
  auto& shared = *reinterpret_cast<end_state*>(shared_word);
  _Unwind_Backtrace(
      [](_Unwind_Context*, void* frames) {
        ++*static_cast<int*>(frames);
        return _URC_NO_REASON;
      },
      &shared.frames);
  alignas(64) volatile word aligned = value;
  shared.sum += reinterpret_cast<word>(&aligned) % 64 == 0 ? aligned : 0;
  arch::switch_last(shared.test, shared_word, value + 1);
}

UNCHECKED PIRN_NOINLINE void end_with_enter_last(word shared_word, word value) {
  auto& shared = *reinterpret_cast<end_state*>(shared_word);
  shared.sum += value;
  arch::enter_last(shared.second.top(), &end_with_switch_last, shared_word, value + 1);
}

TEST(arch, the_last_switches_carry_messages_and_end_backtraces) {
  auto shared = std::make_unique<end_state>();
  static_cast<void>(arch::prepare(shared->second.top(), &end_with_switch_last));  // for enter_last
  for (word i = 0; i < 3; ++i) {
    const context begin = arch::prepare(shared->first.top(), &end_with_enter_last);
    word one = reinterpret_cast<word>(shared.get()), two = 10;
    arch::switch_to(shared->test, begin, one, two);
    EXPECT_EQ(one, reinterpret_cast<word>(shared.get()));
    EXPECT_EQ(two, 12U);
    EXPECT_EQ(shared->sum, 21 * (i + 1));
    EXPECT_GE(shared->frames, 1);
    EXPECT_LE(shared->frames, 3);  // the function, the root frame, and frames that some unwinders add
    shared->frames = 0;
  }
}

PIRN_NONE void add_up(void* pc, void* sp, void* fp, word a, word b, word c, word d) {
  peer resumer{pc, sp, fp};
  word values[arch::value_words] = {a, b, c, d};
  for (;;) {
    values[0] = values[0] + values[1] + values[2] + values[3];
    arch::transfer(resumer, values);
  }
}

TEST(arch, transfer_carries_values_both_ways) {
  memory stack;
  peer adder = arch::prepare(stack.top(), &add_up);
  for (word i = 0; i < 1000; ++i) {
    word values[arch::value_words] = {i, 10, 100, 1000};
    arch::transfer(adder, values);
    EXPECT_EQ(values[0], i + 1110);
    EXPECT_EQ(values[3], 1000U);
  }
}

// A resumer of a context becomes its peer. Here two resumers take turns.
PIRN_NONE void resume_adder(void* pc, void* sp, void* fp, word adder_word, word, word, word) {
  peer outside{pc, sp, fp};
  auto& adder = *reinterpret_cast<peer*>(adder_word);
  word values[arch::value_words] = {1, 2, 3, 4};
  arch::transfer(adder, values);
  arch::transfer(outside, values);
}

TEST(arch, transfer_tells_a_context_who_resumed_it) {
  memory adder_stack, other_stack;
  peer adder = arch::prepare(adder_stack.top(), &add_up);
  word values[arch::value_words] = {1, 1, 1, 1};
  arch::transfer(adder, values);
  EXPECT_EQ(values[0], 4U);
  peer other = arch::prepare(other_stack.top(), &resume_adder);
  values[0] = reinterpret_cast<word>(&adder);
  arch::transfer(other, values);
  EXPECT_EQ(values[0], 10U);
  word again[arch::value_words] = {5, 5, 5, 5};
  arch::transfer(adder, again);
  EXPECT_EQ(again[0], 20U);
}

TEST(arch, stack_is_reused) {
  memory stack;
  struct shared_state {
    context here, there;
    int runs = 0;
  } shared;
  for (int i = 0; i < 1000; ++i) {
    shared.there = arch::prepare(
        stack.top(), +[](word first, word) {
          auto& s = *reinterpret_cast<shared_state*>(first);
          ++s.runs;
          word one = 0, two = 0;
          arch::switch_to(s.there, s.here, one, two);
        });
    word first = reinterpret_cast<word>(&shared), second = 0;
    arch::switch_to(shared.here, shared.there, first, second);
  }
  EXPECT_EQ(shared.runs, 1000);
}

TEST(arch, tag_is_in_sp_and_nowhere_else) {
  memory stack;
  const peer plain = arch::prepare(stack.top(), &add_up);
  EXPECT_FALSE(arch::is_tagged(plain));
  const peer tagged = arch::tagged(plain);
  EXPECT_TRUE(arch::is_tagged(tagged));
  EXPECT_EQ(tagged.pc, plain.pc);
  EXPECT_EQ(tagged.fp, plain.fp);
  EXPECT_NE(tagged.sp, plain.sp);
  EXPECT_EQ(arch::untagged(tagged).sp, plain.sp);
  EXPECT_EQ(arch::untagged(plain).sp, plain.sp);
  EXPECT_TRUE(arch::is_tagged(arch::tagged(tagged)));
}

// Adds each arriving value to the last one until its resumer is tagged.
UNCHECKED PIRN_NONE void count_until_tagged(void* pc, void* sp, void* fp, word a, word b, word c, word d) {
  peer resumer{pc, sp, fp};
  word values[arch::value_words] = {a, b, c, d};
  while (!arch::is_tagged(resumer)) {
    values[3] += values[0];
    arch::transfer(resumer, values);
  }
  arch::transfer_last(arch::untagged(resumer), values);
}

TEST(arch, transfer_into_enters_a_function_on_a_fresh_stack) {
  memory stack;
  for (word slack = 0; slack < 16; ++slack) {
    peer counter;
    word values[arch::value_words] = {5, 6, 7, 100};
    arch::transfer_into<&count_until_tagged>(stack.top() - slack, counter, values);
    for (word i = 1; i < 100; ++i) {
      ASSERT_FALSE(arch::is_tagged(counter));
      EXPECT_EQ(values[0], 5U);
      EXPECT_EQ(values[1], 6U);
      EXPECT_EQ(values[2], 7U);
      EXPECT_EQ(values[3], 100 + 5 * i);
      arch::transfer(counter, values);
    }
    arch::transfer_tagged(counter, values);
    EXPECT_TRUE(arch::is_tagged(counter));
    EXPECT_EQ(counter.pc, nullptr);
    EXPECT_EQ(values[3], 600U);
  }
}

// Three contexts: the first hands over to the second as it ends, and names the third as the next to resume.
UNCHECKED PIRN_NONE void end_in_favour_of(void* pc, void* sp, void* fp, word next, word, word, word) {
  word values[arch::value_words] = {1, 2, 3, 4};
  const peer resumer{pc, sp, fp};
  arch::transfer_last(*reinterpret_cast<peer*>(next), values, resumer);
}

TEST(arch, transfer_last_says_whom_the_resumed_side_finds) {
  memory adder_stack, ending_stack;
  peer adder, next;
  word values[arch::value_words] = {1, 1, 1, 1};
  arch::transfer_into<&add_up>(adder_stack.top(), adder, values);
  EXPECT_EQ(values[0], 4U);
  values[0] = reinterpret_cast<word>(&adder);
  arch::transfer_into<&end_in_favour_of>(ending_stack.top(), next, values);
  EXPECT_EQ(values[0], 10U);
  EXPECT_GE(static_cast<char*>(next.sp), adder_stack.bytes());
  EXPECT_LT(static_cast<char*>(next.sp), adder_stack.top());
}

void return_from_entry(word, word) {}
PIRN_NONE void return_from_transfer_entry(void*, void*, void*, word, word, word, word) {}

void run_into_the_root_by_switch_to() {
  memory stack;
  context here;
  const context there = arch::prepare(stack.top(), &return_from_entry);
  word first = 0, second = 0;
  arch::switch_to(here, there, first, second);
}

void run_into_the_root_by_transfer() {
  memory stack;
  peer there = arch::prepare(stack.top(), &return_from_transfer_entry);
  word values[arch::value_words] = {};
  arch::transfer(there, values);
}

void run_into_the_root_by_transfer_into() {
  memory stack;
  peer there;
  word values[arch::value_words] = {};
  arch::transfer_into<&return_from_transfer_entry>(stack.top(), there, values);
}

// An entry function must not return. One that does traps at once, not at some later place.
TEST(arch_death, returning_from_an_entry_function_traps) {
  EXPECT_EXIT(run_into_the_root_by_switch_to(), testing::KilledBySignal(SIGILL), "");
  EXPECT_EXIT(run_into_the_root_by_transfer(), testing::KilledBySignal(SIGILL), "");
  EXPECT_EXIT(run_into_the_root_by_transfer_into(), testing::KilledBySignal(SIGILL), "");
}

TEST(arch, no_shadow_stack_is_active_here) { EXPECT_FALSE(arch::shadow_stack_active()); }

}  // namespace
