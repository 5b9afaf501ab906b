// The sort workload: quicksort. A separate unit sorts the first of the two parts of each partition, as long as they are
// larger than a cut-off.
#pragma once

#include <utility>
#include <vector>

#include "../harness.hpp"

namespace bench {

/// Measures a library; `Units` as in units_pirn.hpp.
template <typename Units>
class sort_row {
 public:
  static void measure() {
    std::vector<std::uint32_t> shuffled(elements);
    std::uint64_t random = 1;
    std::uint64_t sum = 0;
    for (std::uint32_t& each : shuffled) {
      random = random * 6364136223846793005 + 1442695040888963407;
      each = static_cast<std::uint32_t>(random >> 32);
      sum += each;
    }
    const auto run = [&](std::uint64_t n) {
      for (std::uint64_t done = 0; done < n; done += elements) {
        std::vector<std::uint32_t> numbers = shuffled;
        in_units(numbers.data(), numbers.data() + elements);
        std::uint64_t after = numbers[0];
        bool ordered = true;
        for (std::uint64_t i = 1; i < elements; ++i) {
          after += numbers[i];
          ordered &= numbers[i - 1] <= numbers[i];
        }
        check(ordered && after == sum, "the same numbers are in order");
      }
    };
    const double ns = ns_per_operation(run, elements, clock_for(input("WORKERS")));
    row("sort", Units::name, param("workers", input("WORKERS")), "ns", ns, "a unit for each partition above 512");
  }

 private:
  static constexpr std::uint64_t elements = 200'000;
  static constexpr std::ptrdiff_t cut_off = 512;
  static constexpr std::ptrdiff_t few = 24;

  /// Returns the begin of the second part (Hoare); neither part is empty.
  static std::uint32_t* partition(std::uint32_t* begin, std::uint32_t* end) {
    const std::uint32_t a = *begin, b = begin[(end - begin) / 2], c = end[-1];
    const std::uint32_t pivot = std::max(std::min(a, b), std::min(std::max(a, b), c));
    for (std::uint32_t *left = begin, *right = end - 1;; ++left, --right) {
      while (*left < pivot) {
        ++left;
      }
      while (pivot < *right) {
        --right;
      }
      if (left >= right) {
        return left == begin ? left + 1 : left;
      }
      std::swap(*left, *right);
    }
  }
  static void alone(std::uint32_t* begin, std::uint32_t* end) {
    while (end - begin > few) {
      std::uint32_t* const second = partition(begin, end);
      alone(begin, second);
      begin = second;
    }
    for (std::uint32_t* each = begin; each < end; ++each) {
      const std::uint32_t value = *each;
      std::uint32_t* hole = each;
      for (; hole != begin && value < hole[-1]; --hole) {
        *hole = hole[-1];
      }
      *hole = value;
    }
  }
  static void in_units(std::uint32_t* begin, std::uint32_t* end) {
    if (end - begin <= cut_off) {
      alone(begin, end);
      return;
    }
    std::uint32_t* const second = partition(begin, end);
    Units::both([=] { in_units(begin, second); }, [=] { in_units(second, end); });
  }
};

}  // namespace bench
