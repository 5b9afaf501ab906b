// The stack around a switch: the red zone, alignment, over-aligned locals and alloca.
#include "conformance_isa.hpp"

namespace conformance {
namespace {

// ---- red zone ---------------------------------------------------------------------------------------------------

// A leaf function except for the switch: its array lies below sp, where nothing may be pushed. Eight words from 100 on
// add up to 828.
template <class Shape>
CONFORMANCE_KEEP long sum_in_red_zone_of_main(Shape& shape, long from) {
  volatile long values[8];
  for (int i = 0; i < 8; ++i) {
    values[i] = from + i;
  }
  shape.resume();
  long sum = 0;
  for (int i = 0; i < 8; ++i) {
    sum += values[i];
  }
  return sum;
}

template <class Shape>
CONFORMANCE_KEEP long sum_in_red_zone_of_context(Shape& shape, long from) {
  volatile long values[8];
  for (int i = 0; i < 8; ++i) {
    values[i] = from + i;
  }
  shape.yield();
  long sum = 0;
  for (int i = 0; i < 8; ++i) {
    sum += values[i];
  }
  return sum;
}

// As `sum_in_red_zone_of_main`, but the array fills the red zone to its last byte.
template <class Shape>
CONFORMANCE_KEEP long sum_in_whole_red_zone(Shape& shape, long from) {
  volatile long values[14];
  for (int i = 0; i < 14; ++i) {
    values[i] = from + i;
  }
  shape.resume();
  long sum = 0;
  for (int i = 0; i < 14; ++i) {
    sum += values[i];
  }
  return sum;
}

long sum_of_context;

template <class Shape>
void sum_inside(Shape& shape) {
  shape.yield();
  sum_of_context = sum_in_red_zone_of_context(shape, 200);
  shape.yield();
  shape.yield();
}

template <class Shape>
void red_zone() {
  static Shape shape;
  shape.start(&sum_inside<Shape>);
  const long sum_of_main = sum_in_red_zone_of_main(shape, 100);
  shape.resume();
  const long sum_of_whole = sum_in_whole_red_zone(shape, 300);
  expect(sum_of_main == 828, Shape::name, "red zone of the resumer");
  expect(sum_of_context == 1628, Shape::name, "red zone of the context");
  expect(sum_of_whole == 14 * 300 + 91, Shape::name, "whole red zone");
}

// ---- alignment --------------------------------------------------------------------------------------------------

void return_at_once(word, word second) {
  auto& probe = *reinterpret_cast<entry_probe*>(second);
  word one = 0, two = 0;
  arch::switch_to(probe.there, probe.here, one, two);
}

PIRN_NONE void transfer_back_at_once(void* pc, void* sp, void* fp, word, word, word, word) {
  arch::peer resumer{pc, sp, fp};
  word values[4] = {};
  arch::transfer(resumer, values);
}

CONFORMANCE_KEEP bool called_aligned() {
  alignas(16) volatile char local[16] = {};
  return reinterpret_cast<word>(local) % 16 == 0;
}

bool context_aligned_at_entry, context_aligned_after_resume;

template <class Shape>
void watch_alignment(Shape& shape) {
  context_aligned_at_entry = called_aligned();
  const word sp = stack_pointer();
  shape.yield();
  context_aligned_after_resume = called_aligned() && stack_pointer() == sp;
}

template <class Shape>
void alignment() {
  static Shape shape;
  const word sp = stack_pointer();
  shape.start(&watch_alignment<Shape>);
  const bool main_aligned = called_aligned() && stack_pointer() == sp;
  shape.resume();
  expect(context_aligned_at_entry, Shape::name, "stack aligned in a new context");
  expect(context_aligned_after_resume, Shape::name, "stack aligned in a resumed context");
  expect(main_aligned, Shape::name, "stack aligned in the resumer");
}

// Tries tops of every remainder, since prepare rounds down.
void alignment_at_entry() {
  static stack own;
  bool by_switch = true, by_transfer = true, by_transfer_into = true;
  for (word slack = 0; slack < 32; ++slack) {
    entry_probe probe{1, reinterpret_cast<void*>(&return_at_once), {}, {}};
    probe.there = arch::prepare(static_cast<char*>(own.top()) - slack, &note_sp_of_switch_to);
    word one = 0, two = reinterpret_cast<word>(&probe);
    arch::switch_to(probe.here, probe.there, one, two);
    by_switch = by_switch && probe.sp % 16 == entry_sp_offset;

    probe.sp = 1;
    probe.proceed = reinterpret_cast<void*>(&transfer_back_at_once);
    arch::peer there = arch::prepare(static_cast<char*>(own.top()) - slack, &note_sp_of_transfer);
    word values[4] = {0, 0, 0, reinterpret_cast<word>(&probe)};
    arch::transfer(there, values);
    by_transfer = by_transfer && probe.sp % 16 == entry_sp_offset;

    probe.sp = 1;
    values[3] = reinterpret_cast<word>(&probe);
    arch::transfer_into<&note_sp_of_transfer>(static_cast<char*>(own.top()) - slack, there, values);
    by_transfer_into = by_transfer_into && probe.sp % 16 == entry_sp_offset;
  }
  expect(by_switch, "switch_to", "16-byte alignment at the entry's first instruction");
  expect(by_transfer, "transfer", "16-byte alignment at the entry's first instruction");
  expect(by_transfer_into, "transfer_into", "16-byte alignment at the entry's first instruction");
}

// ---- over-aligned locals and alloca -----------------------------------------------------------------------------

void fill(volatile char* bytes, std::size_t count, int seed) {
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<char>(static_cast<int>(i) * 7 + seed);
  }
}
bool filled(const volatile char* bytes, std::size_t count, int seed) {
  bool same = true;
  for (std::size_t i = 0; i < count; ++i) {
    same = same && bytes[i] == static_cast<char>(static_cast<int>(i) * 7 + seed);
  }
  return same;
}

// `go` is inlined, so that the switch lies in the function with the unusual frame.
template <class Go>
PIRN_ALWAYS_INLINE bool odd_frame_survives(Go go, std::size_t count, int seed) {
  alignas(64) volatile char aligned[128];
  auto* dynamic = static_cast<volatile char*>(__builtin_alloca(count));
  word live = opaque<word>(77);
  fill(aligned, sizeof aligned, seed);
  fill(dynamic, count, seed + 1);
  go();
  const bool in_place = reinterpret_cast<word>(&aligned) % 64 == 0;
  return in_place && filled(aligned, sizeof aligned, seed) && filled(dynamic, count, seed + 1) && live == 77;
}

template <class Shape>
struct resumer {
  Shape& shape;
  PIRN_ALWAYS_INLINE void operator()() const { shape.resume(); }
};
template <class Shape>
struct yielder {
  Shape& shape;
  PIRN_ALWAYS_INLINE void operator()() const { shape.yield(); }
};

template <class Shape>
CONFORMANCE_KEEP bool odd_frame_of_main(Shape& shape, std::size_t count) {
  return odd_frame_survives(resumer<Shape>{shape}, count, 3);
}
template <class Shape>
CONFORMANCE_KEEP bool odd_frame_of_context(Shape& shape, std::size_t count) {
  return odd_frame_survives(yielder<Shape>{shape}, count, 40);
}

bool context_survived;

template <class Shape>
void odd_frame_inside(Shape& shape) {
  context_survived = odd_frame_of_context(shape, opaque<std::size_t>(333));
}

template <class Shape>
void odd_frames() {
  static Shape shape;
  shape.start(&odd_frame_inside<Shape>);
  const bool main_survived = odd_frame_of_main(shape, opaque<std::size_t>(1001));
  expect(main_survived, Shape::name, "over-aligned local and alloca of the resumer");
  expect(context_survived && shape.ended, Shape::name, "over-aligned local and alloca of the context");
}

// ---- stacks side by side ----------------------------------------------------------------------------------------

// Two contexts that switch directly to one another. Their stacks lie so close that valgrind, unless informed, takes the
// switch for a large push or pop, and the locals of the other context for dead.
struct neighbours {
  stack low, high;
  arch::context main, at_low, at_high;
  int survived = 0;
};

void visit(arch::context& from, const arch::context& to, neighbours& shared) {
  volatile char local[200];
  fill(local, sizeof local, 9);
  for (int i = 0; i < 2; ++i) {
    word first = reinterpret_cast<word>(&shared), second = 0;
    arch::switch_to(from, to, first, second);
    shared.survived += filled(local, sizeof local, 9) ? 1 : 0;
  }
}

void from_low(word first, word) {
  auto& shared = *reinterpret_cast<neighbours*>(first);
  visit(shared.at_low, shared.at_high, shared);
  word one = 0, two = 0;
  arch::switch_to(shared.at_low, shared.at_high, one, two);
}

void from_high(word first, word) {
  auto& shared = *reinterpret_cast<neighbours*>(first);
  visit(shared.at_high, shared.at_low, shared);
  word one = 0, two = 0;
  arch::switch_to(shared.at_high, shared.main, one, two);
}

void side_by_side() {
  static neighbours shared;
  shared.at_low = arch::prepare(shared.low.top(), &from_low);
  shared.at_high = arch::prepare(shared.high.top(), &from_high);
  word first = reinterpret_cast<word>(&shared), second = 0;
  arch::switch_to(shared.main, shared.at_low, first, second);
  expect(shared.survived == 4, "switch_to", "locals of contexts on neighbouring stacks");
}

// ---- landing pads -----------------------------------------------------------------------------------------------

template <class Shape>
void yield_forever(Shape& shape) {
  for (;;) {
    shape.yield();
  }
}

template <class Shape>
void landing_pads() {
  static Shape shape;
  shape.make(&yield_forever<Shape>);
  const bool at_start = !Shape::prepared || is_landing_pad(shape.inside.pc);
  shape.resume();
  const bool at_first_resume = is_landing_pad(shape.outside.pc);
  shape.resume();
  expect(at_start && at_first_resume && is_landing_pad(shape.inside.pc) && is_landing_pad(shape.outside.pc),
         Shape::name, "every place jumped to is a landing pad");
}

template <class Shape>
void check_frames_of() {
  red_zone<Shape>();
  alignment<Shape>();
  odd_frames<Shape>();
  if (has_landing_pads) {
    landing_pads<Shape>();
  }
}

}  // namespace

void check_frames() {
  check_frames_of<by_switch_to>();
  check_frames_of<by_transfer>();
  check_frames_of<by_transfer_into>();
#if defined(CONFORMANCE_HAS_FORK)
  check_frames_of<by_fork>();
#endif
  alignment_at_entry();
  side_by_side();
  // A thread with a shadow stack would die at the next return after a switch, so all checks above show that it is off.
  expect(!arch::shadow_stack_active(), nullptr, "no shadow stack is active");
}

}  // namespace conformance
