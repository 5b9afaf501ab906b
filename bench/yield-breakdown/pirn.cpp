// The gain of each optimization of a yield, one after the other, after Li and others, "Stackful Coroutine Made Fast":
// ten contexts yield to each other in turn. The loop that is subtracted for the net figure also loses all registers in
// each turn.
#include <array>
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

/// Saves the registers that the calling convention preserves, like switches that are functions.
[[gnu::naked, gnu::noinline]] void switch_out_of_line(void** /*from*/, void* /*to*/) {
  asm("pushq %rbp\n\tpushq %rbx\n\tpushq %r12\n\tpushq %r13\n\tpushq %r14\n\tpushq %r15\n\t"
      "movq %rsp, (%rdi)\n\t"
      "movq %rsi, %rsp\n\t"
      "popq %r15\n\tpopq %r14\n\tpopq %r13\n\tpopq %r12\n\tpopq %rbx\n\tpopq %rbp\n\t"
      "retq");
}

PIRN_ALWAYS_INLINE void switch_inline(unit& from, unit& to) {
  arch::word none0 = arch::undef_word();
  arch::word none1 = arch::undef_word();
  arch::switch_to(from.state, to.state, none0, none1);
}

struct classic {
  static void change(unit& from, unit& to) { switch_out_of_line(&from.state.sp, to.state.sp); }
  [[gnu::noinline]] static void yield() {
    unit* const self = current;
    current = self->next;
    change(*self, *current);
  }
  static void prepare(unit& fresh, std::byte* top, arch::switch_entry entry) {
    constexpr int saved = 6;
    void** const slot = reinterpret_cast<void**>(top) - 2;
    slot[0] = reinterpret_cast<void*>(entry);
    fresh.state.sp = slot - saved;
    for (int i = 0; i < saved; ++i) {
      slot[-1 - i] = nullptr;
    }
  }
};

struct switch_inlined {
  PIRN_ALWAYS_INLINE static void change(unit& from, unit& to) { switch_inline(from, to); }
  [[gnu::noinline]] static void yield() {
    unit* const self = current;
    current = self->next;
    switch_inline(*self, *current);
  }
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
constexpr std::size_t large = 64 << 10;
constexpr std::size_t small = 4112;  // the paper's
constexpr std::size_t colour = 128;  // as the stacks of pirn's pools differ

/// Measures one yield between stacks at the given distance.
template <class Form>
double cost(std::size_t distance) {
  const std::size_t bytes = distance * units;
  const auto free_later = std::make_unique_for_overwrite<std::byte[]>(bytes + large);
  const auto begin = (reinterpret_cast<std::uintptr_t>(free_later.get()) + large - 1) / large * large;
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
      return std::string(R"({"step":")") + step + R"(","cost":")" + what + "\"}";
    };
    bench::row("yield-breakdown", "pirn", params("gross"), "ns", gross);
    bench::row("yield-breakdown", "pirn", params("net"), "ns", gross - loop);
  };
  row("1 out of line", cost<classic>(large));
  row("2 inline", cost<switch_inlined>(large));
  row("3 preserve_none", cost<in_convention>(large));
  row("4 colouring", cost<in_convention>(large + colour));
  row("5 small stack", cost<in_convention>(small));
}
