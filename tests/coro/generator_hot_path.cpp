// The loops that generator_hot_path_test.py checks in machine code.
#include <cstddef>

#include "pirn/coro/generator.hpp"

using word = unsigned long;

// The consumer of a generator with an unknown body.
extern "C" word sum_of(pirn::generator<word>& elements) {
  word sum = 0;
  for (const word element : elements) {
    sum += element;
  }
  return sum;
}

// The producer's loop is in the entry function of this body.
struct count_down {
  word from;
  template <class Yield>
  void operator()(Yield& yield) const {
    for (word i = from; i != 0; --i) {
      yield(i);
    }
  }
};
extern "C" void make_count_down(void* at, word from) { ::new (at) pirn::generator<word>(count_down{from}); }

extern "C" word sum_in_frame(word from) {
  pirn::generator<word, pirn::frame<2048>> elements = count_down{from};
  word sum = 0;
  for (const word element : elements) {
    sum += element;
  }
  return sum;
}

extern "C" word sum_in_pool(word from) {
  pirn::generator<word> elements = count_down{from};
  word sum = 0;
  for (const word element : elements) {
    sum += element;
  }
  return sum;
}

struct numbers {
  const int* data;
  std::size_t size;
  template <class Yield>
  void operator()(Yield& yield) const {
    for (std::size_t i = 0; i < size; ++i) {
      yield(data[i]);
    }
  }
};
extern "C" int sum_for_each(const int* data, std::size_t size) {
  int sum = 0;
  pirn::for_each<int>(numbers{data, size}, [&](int number) { sum += number; });
  return sum;
}
extern "C" int sum_plain(const int* data, std::size_t size) {
  int sum = 0;
  for (std::size_t i = 0; i < size; ++i) {
    sum += data[i];
  }
  return sum;
}
