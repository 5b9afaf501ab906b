// Generators elided into the loops of their consumers, by hand, as a pass of the compiler could do it: each resume and
// each yield notes where its side goes on, and jumps to where the other side does. elision_experiment.py looks at the
// code.
#include <cstdint>

using word = std::uint64_t;

namespace {

/// Keeps the sum from becoming a formula.
inline void add(word& sum, word element) {
  sum += element;
  asm volatile("" : "+r"(sum));
}

}  // namespace

extern "C" word plain(word n) {
  word sum = 0;
  for (word i = n; i != 0; --i) {
    add(sum, i);
  }
  return sum;
}

/// The body counts down and yields at one place; the consumer resumes it at two, `begin` and `++`.
extern "C" word one_yield(word n) {
  int producer = 0, consumer = 0;
  word element = 0, i = 0, sum = 0;
  bool ended = false;
  for (;;) {
    // The producer.
    if (producer == 0) {
      i = n;
    } else {
      --i;
    }
    ended = i == 0;
    element = i;
    producer = 1;
    // The consumer.
    if (consumer == 0) {
      consumer = 1;
    }
    if (ended) {
      return sum;
    }
    add(sum, element);
  }
}

/// A second generator takes from it and passes every third element on.
extern "C" word filtered(word n) {
  int producer = 0, filter = 0, consumer = 0, taker = 0;
  word produced = 0, element = 0, i = 0, sum = 0;
  bool produced_all = false, ended = false;
resume_filter:
  taker = filter == 0 ? 0 : 1;
resume_producer:
  if (producer == 0) {
    i = n;
  } else {
    --i;
  }
  produced_all = i == 0;
  produced = i;
  producer = 1;
  if (taker == 0) {
    taker = 1;
  }
  if (produced_all) {
    ended = true;
  } else if (produced % 3 == 0) {
    element = produced;
    filter = 1;
  } else {
    goto resume_producer;
  }
  if (consumer == 0) {
    consumer = 1;
  }
  if (ended) {
    return sum;
  }
  add(sum, element);
  goto resume_filter;
}
extern "C" word plain_filtered(word n) {
  word sum = 0;
  for (word i = n; i != 0; --i) {
    if (i % 3 == 0) {
      add(sum, i);
    }
  }
  return sum;
}

/// Two bodies in turn, each of which yields at two places.
extern "C" word two_in_turn(word n) {
  int first = 0, second = 0;
  word a = 0, b = 0, i = 0, k = 0, sum = 0;
  bool ended = false;
  for (;;) {
    if (first == 1) {
      a = i * 2;
      first = 2;
    } else {
      i = first == 0 ? n : i - 1;
      ended = ended || i == 0;
      a = i;
      first = 1;
    }
    if (second == 1) {
      b = k * 2;
      second = 2;
    } else {
      k = second == 0 ? n : k - 1;
      ended = ended || k == 0;
      b = k;
      second = 1;
    }
    if (ended) {
      return sum;
    }
    add(sum, a ^ b);
  }
}
extern "C" word plain_in_turn(word n) {
  word sum = 0;
  for (word i = n, k = n; i != 0 && k != 0; --i, --k) {
    add(sum, i ^ k);
    add(sum, (i * 2) ^ (k * 2));
  }
  return sum;
}
