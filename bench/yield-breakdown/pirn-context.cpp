// The paper's figure 11 beside the form that pirn has: ten contexts yield to each other in turn, by a switch that is
// the last thing of a yield, or by one inlined in it. The loop that is subtracted for the net figure also loses all
// registers in each turn.
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "../empty_loop.hpp"
#include "../harness.hpp"
#include "pirn/context/arch.hpp"

namespace {

namespace arch = pirn::arch;

struct unit {
  arch::context state;
  unit* next = nullptr;
  std::uint64_t yields = 0;  // to be done
  std::uint64_t done = 0;
};

unit* current = nullptr;
unit starter;

PIRN_ALWAYS_INLINE void switch_inline(unit& from, unit& to) {
  arch::word none0 = arch::undef_word();
  arch::word none1 = arch::undef_word();
  arch::switch_to(from.state, to.state, none0, none1);
}

struct switch_inlined {
  PIRN_ALWAYS_INLINE static void change(unit& from, unit& to) { switch_inline(from, to); }
  static void prepare(unit& fresh, std::byte* top, arch::switch_entry entry) {
    fresh.state = arch::prepare(top, entry);
  }
};

struct in_convention : switch_inlined {
  [[gnu::noinline]] PIRN_NONE static void yield() {
    unit* const self = current;
    current = self->next;
    switch_inline(*self, *current);
  }
};

#if defined(__clang__)
/// The paper's figure 11: the switch is the last thing of a yield that saves nothing, so it resumes at the return
/// address of the other context's yield, by a jump in place of a return.
struct tail : switch_inlined {
  // The arguments of preserve_none are in r12 and r13.
  [[gnu::naked, gnu::noinline]] PIRN_NONE static void change(unit& /*from*/, unit& /*to*/) {
    asm("movq %rsp, 8(%r12)\n\tmovq %rbp, 16(%r12)\n\t"
        "movq 8(%r13), %rsp\n\tmovq 16(%r13), %rbp\n\t"
        "popq %rax\n\tjmpq *%rax");
  }
  [[gnu::noinline]] PIRN_NONE static void yield() {
    unit* const self = current;
    current = self->next;
    change(*self, *current);  // a tail call, by optimization
  }
  static void prepare(unit& fresh, std::byte* top, arch::switch_entry entry) {
    void** const slot = reinterpret_cast<void**>(top) - 2;
    slot[0] = reinterpret_cast<void*>(entry);
    fresh.state = {nullptr, slot, nullptr};
  }
};
static_assert(offsetof(unit, state) == 0 && offsetof(arch::context, sp) == 8 && offsetof(arch::context, fp) == 16);
#endif

/// Yields two calls further down.
template <class Form>
struct two_deep : Form {
  [[gnu::noinline]] PIRN_NONE static void yield_below() {
    Form::yield();
    asm volatile("");  // so that it is no tail call
  }
  [[gnu::noinline]] PIRN_NONE static void yield() {
    yield_below();
    asm volatile("");
  }
};

template <class Form>
[[noreturn]] void body(arch::word /*first*/, arch::word /*second*/) {
  unit* const self = current;
  std::uint64_t k = 0;
  for (; k < self->yields; ++k) {
    Form::yield();
  }
  self->done = k;
  // All do as many yields, so the next unit comes to its end too. The last unit resumes the starter.
  unit* const next = self->next->done != 0 ? &starter : self->next;
  current = next;
  Form::change(*self, *next);
  __builtin_unreachable();
}

constexpr std::size_t units = 10;
constexpr std::size_t alignment = 64 << 10;
constexpr std::size_t distance = alignment + 128;  // of stacks, coloured as those of pirn's pools

/// Measures one yield.
template <class Form>
double cost() {
  const std::size_t bytes = distance * units;
  const auto free_later = std::make_unique_for_overwrite<std::byte[]>(bytes + alignment);
  const auto begin = (reinterpret_cast<std::uintptr_t>(free_later.get()) + alignment - 1) / alignment * alignment;
  return bench::ns_per_operation(
      [&](std::uint64_t n) {
        std::array<unit, units> all;
        for (std::size_t i = 0; i < units; ++i) {
          all[i].next = &all[(i + 1) % units];
          all[i].yields = n / units;
          Form::prepare(all[i], reinterpret_cast<std::byte*>(begin + (i + 1) * distance), &body<Form>);
        }
        current = &all[0];
        Form::change(starter, all[0]);
        for (const unit& each : all) {
          bench::check(each.done == n / units, "every context yields as often as asked");
        }
      },
      units);
}

}  // namespace

int main() {
  const double loop = bench::ns_per_operation(bench::empty_loop, units);
  const auto row = [&](const char* step, double gross) {
    const auto params = [&](const char* what) {
      return std::string(R"({"step":")") + step + R"(","bodies":"one","cost":")" + what + "\"}";
    };
    bench::row("yield-breakdown", "pirn-context", params("gross"), "ns", gross);
    bench::row("yield-breakdown", "pirn-context", params("net"), "ns", gross - loop);
  };
  row("preserve_none", cost<in_convention>());
  row("two calls deep", cost<two_deep<in_convention>>());
#if defined(__clang__)
  row("tail", cost<tail>());
  row("tail, two calls deep", cost<two_deep<tail>>());
#endif
}
