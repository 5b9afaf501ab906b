// The two shapes of the spawn workload, for any library that can create a unit and join it.
#pragma once

#include "../harness.hpp"

namespace bench {

/// Measures `join(create())` one at a time and a batch of creates followed by its joins. Each unit adds one to `ran`.
template <typename Create, typename Join>
void spawn_rows(const char* impl, const std::uint64_t& ran, Create create, Join join, const char* note = nullptr) {
  const std::uint64_t batch = input("BATCH");
  const std::uint64_t workers = input("WORKERS");
  std::vector<decltype(create())> all;
  all.reserve(batch);
  const double in_batch = ns_per_operation(
      [&](std::uint64_t n) {
        const std::uint64_t before = ran;
        for (std::uint64_t done = 0; done < n; done += batch) {
          for (std::uint64_t i = 0; i < batch; ++i) {
            all.push_back(create());
          }
          for (auto& each : all) {
            join(each);
          }
          all.clear();
        }
        check(ran - before == n, "every unit of a batch runs once");
      },
      batch, clock_for(workers));
  row("spawn", impl, with_workers(mode("batch"), workers), "ns", in_batch, note);
  const double single = ns_per_operation(
      [&](std::uint64_t n) {
        const std::uint64_t before = ran;
        for (std::uint64_t i = 0; i < n; ++i) {
          auto one = create();
          join(one);
        }
        check(ran - before == n, "every single unit runs once");
      },
      10, clock_for(workers));
  row("spawn", impl, with_workers(mode("single"), workers), "ns", single, note);
}

}  // namespace bench
