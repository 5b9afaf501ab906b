// The condvar workload: 4 producers and 4 consumers share a buffer of 8 places. All elements are different numbers, and
// the sum of the taken ones must be that of the put ones.
#pragma once

#include <mutex>

#include "../harness.hpp"

namespace bench {

/// A first-in-first-out buffer whose users wait for room and for elements.
template <typename Units>
class bounded_buffer {
 public:
  void put(std::uint64_t element) {
    std::unique_lock lock(guard_);
    has_room_.wait(lock, [this] { return size_ < places; });
    elements_[(first_ + size_++) % places] = element;
    lock.unlock();
    has_elements_.notify_one();
  }
  std::uint64_t take() {
    std::unique_lock lock(guard_);
    has_elements_.wait(lock, [this] { return size_ > 0; });
    const std::uint64_t element = elements_[first_++ % places];
    --size_;
    lock.unlock();
    has_room_.notify_one();
    return element;
  }

 private:
  static constexpr std::uint64_t places = 8;

  typename Units::mutex guard_;
  typename Units::condition has_room_;
  typename Units::condition has_elements_;
  std::uint64_t elements_[places] = {};
  std::uint64_t first_ = 0;
  std::uint64_t size_ = 0;
};

/// Measures a library; `Units` as in units_pirn.hpp.
template <typename Units>
void condvar_row() {
  static constexpr std::uint64_t pairs = 4;
  const auto run = [](std::uint64_t n) {
    bounded_buffer<Units> buffer;
    std::uint64_t sums[pairs] = {};
    Units::together(2 * pairs, [&](std::uint64_t i) {
      const std::uint64_t share = n / pairs;
      if (i < pairs) {
        for (std::uint64_t element = i * share; element < (i + 1) * share; ++element) {
          buffer.put(element);
        }
        return;
      }
      std::uint64_t sum = 0;
      for (std::uint64_t k = 0; k < share; ++k) {
        sum += buffer.take();
      }
      sums[i - pairs] = sum;
    });
    check(sums[0] + sums[1] + sums[2] + sums[3] == n * (n - 1) / 2, "every element arrives once");
  };
  const double ns = ns_per_operation(run, pairs * 5000, clock_for(input("WORKERS")));
  row("condvar", Units::name, param("workers", input("WORKERS")), "ns", ns, Units::note);
}

}  // namespace bench
