// One case of in_stack_experiment.py: in_stack_experiment FORM CASE. Returns 0 if the sum of the elements is right.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <memory>

#include "bench/in_stack.hpp"
#include "pirn/coro/generator.hpp"

namespace {

using word = std::uint64_t;

/// The interface of bench::in_stack::generator, of pirn's.
template <class Generator>
class wrapped {
 public:
  template <class... Args>
  explicit wrapped(Args&&... args) : elements_(static_cast<Args&&>(args)...), at_(elements_.begin()) {}
  explicit operator bool() const { return at_ != std::default_sentinel; }
  word operator*() const { return *at_; }
  void resume() { ++at_; }

 private:
  Generator elements_;
  typename Generator::iterator at_;
};
struct memory {
  static constexpr std::size_t size = 65536;
  std::unique_ptr<char[]> bytes{new char[size]};
};
struct on_its_stack {
  template <class Body>
  struct generator : memory, wrapped<pirn::generator<word>> {
    explicit generator(Body& body)
        : wrapped<pirn::generator<word>>(pirn::stack(bytes.get(), bytes.get() + size), body) {}
  };
};
struct in_a_frame {
  template <class Body>
  struct generator : wrapped<pirn::generator<word, pirn::frame<131072>>> {
    explicit generator(Body& body) : wrapped<pirn::generator<word, pirn::frame<131072>>>(body) {}
  };
};
struct in_stack {
  template <class Body>
  using generator = bench::in_stack::generator<Body>;
};
/// A function that calls no other one.
struct count_down {
  word from;
  template <class Yield>
  void operator()(Yield& yield) const {
    loop(yield, from);
  }
  template <class Yield>
  [[gnu::noinline]] static void loop(Yield& yield, word from) {
    for (word i = from; i != 0; --i) {
      yield(i);
    }
  }
};

/// Yields from different depths, and returns between two elements.
struct descend {
  word from;
  template <class Yield>
  void operator()(Yield& yield) const {
    step(yield, from);
  }
  template <class Yield>
  [[gnu::noinline]] static word step(Yield& yield, word depth) {
    volatile word below[8] = {depth};
    if (depth != 0) {
      below[1] = step(yield, depth - 1);
      yield(depth);
    }
    return below[0] + below[1];
  }
};

/// Has arguments in memory, and writes below its caller's frame.
[[gnu::noinline]] word writes_below(word a, word b, word c, word d, word e, word f, word g, word h, word i) {
  volatile word room[20];
  for (volatile word& each : room) {
    each = 0x5a5a5a5a;
  }
  return a + b + c + d + e + f + g + h + i + (room[3] & 0);
}

constexpr word n = 1000;
constexpr word sum_of_n = n * (n + 1) / 2;

template <class Form>
[[gnu::noinline]] bool plain() {
  IN_STACK_ADDRESS_BY_FP();
  word sum = 0;
  {
    count_down body{n};
    typename Form::template generator<count_down> elements(body);
    for (; elements; elements.resume()) {
      sum += *elements;
    }
  }
  return sum == sum_of_n;
}

template <class Form>
[[gnu::noinline]] bool calls() {
  IN_STACK_ADDRESS_BY_FP();
  word sum = 0;
  {
    count_down body{n};
    typename Form::template generator<count_down> elements(body);
    for (; elements; elements.resume()) {
      sum += *elements + writes_below(1, 2, 3, 4, 5, 6, 7, 8, 9);
    }
  }
  return sum == sum_of_n + 45 * n;
}

template <class Form>
[[gnu::noinline]] bool calls_from_a_fixed_frame() {
  word sum = 0;
  {
    count_down body{n};
    typename Form::template generator<count_down> elements(body);
    for (; elements; elements.resume()) {
      sum += *elements + writes_below(1, 2, 3, 4, 5, 6, 7, 8, 9);
    }
  }
  return sum == sum_of_n + 45 * n;
}

template <class Form>
[[gnu::noinline]] bool deep() {
  IN_STACK_ADDRESS_BY_FP();
  constexpr word depth = 50;
  word sum = 0;
  {
    descend body{depth};
    typename Form::template generator<descend> elements(body);
    for (; elements; elements.resume()) {
      sum += *elements + writes_below(1, 2, 3, 4, 5, 6, 7, 8, 9);
    }
  }
  return sum == depth * (depth + 1) / 2 + 45 * depth;
}

/// An inner generator lives during one turn of the outer one.
template <class Form>
[[gnu::noinline]] bool nested() {
  IN_STACK_ADDRESS_BY_FP();
  word sum = 0;
  {
    count_down outer{n};
    typename Form::template generator<count_down> elements(outer);
    for (; elements; elements.resume()) {
      count_down inner{*elements % 5};
      typename Form::template generator<count_down> inner_elements(inner);
      for (; inner_elements; inner_elements.resume()) {
        sum += *elements * *inner_elements;
      }
    }
  }
  word expected = 0;
  for (word i = 1; i <= n; ++i) {
    expected += i * (i % 5) * (i % 5 + 1) / 2;
  }
  return sum == expected;
}

/// Two generators whose bodies are suspended at different depths, with turns of one and the other.
template <class Form>
[[gnu::noinline]] bool interleaved() {
  IN_STACK_ADDRESS_BY_FP();
  constexpr word depth = 50;
  word sum = 0;
  {
    descend one{depth}, two{depth};
    typename Form::template generator<descend> first(one);
    typename Form::template generator<descend> second(two);
    for (; first && second; first.resume(), second.resume()) {
      sum += *first * *second;
    }
  }
  return sum == depth * (depth + 1) * (2 * depth + 1) / 6;
}

/// Nothing interleaves, but the consumer moves sp between two elements.
template <class Form>
[[gnu::noinline]] bool consumer_allocates() {
  IN_STACK_ADDRESS_BY_FP();
  constexpr word depth = 50;
  word sum = 0;
  {
    descend body{depth};
    typename Form::template generator<descend> elements(body);
    for (; elements; elements.resume()) {
      auto* const room = static_cast<volatile word*>(__builtin_alloca(*elements * sizeof(word)));
      room[0] = *elements;
      sum += room[0];
    }
  }
  return sum == depth * (depth + 1) / 2;
}

template <class Form>
int run(const char* name) {
  const struct {
    const char* name;
    bool (*is_right)();
  } all[] = {{"plain", plain<Form>},
             {"calls", calls<Form>},
             {"calls-from-a-fixed-frame", calls_from_a_fixed_frame<Form>},
             {"deep", deep<Form>},
             {"nested", nested<Form>},
             {"consumer-allocates", consumer_allocates<Form>},
             {"interleaved", interleaved<Form>}};
  for (const auto& each : all) {
    if (std::strcmp(each.name, name) == 0) {
      return each.is_right() ? 0 : 1;
    }
  }
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    return 2;
  }
  return std::strcmp(argv[1], "in-stack") == 0 ? run<in_stack>(argv[2])
         : std::strcmp(argv[1], "frame") == 0  ? run<in_a_frame>(argv[2])
                                               : run<on_its_stack>(argv[2]);
}
