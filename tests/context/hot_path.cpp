// The loops that hot_path_test.py checks in machine code.
#include "pirn/context/arch.hpp"

namespace arch = pirn::arch;
using arch::word;

extern "C" word switch_loop(arch::context& from, const arch::context& to, word count) {
  word sum = 0;
  for (word i = 0; i < count; ++i) {
    word first = i, second = 0;
    arch::switch_to(from, to, first, second);
    sum += first;
  }
  return sum;
}

extern "C" word transfer_loop(arch::peer& other, word count) {
  arch::peer to = other;
  word sum = 0;
  for (word i = 0; i < count; ++i) {
    word values[arch::value_words] = {i, 0, 0, 0};
    arch::transfer(to, values);
    sum += values[0];
  }
  other = to;
  return sum;
}
