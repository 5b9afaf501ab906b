// Random programs see only what C++20 allows, and all of it except what docs/testing.md leaves out. The outcomes of an
// exploration with stale reads are compared with those of the axioms of [atomics.order] and [intro.races].
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "pirn/detail/platform.hpp"
#include "pirn/sim/explore.hpp"
#include "pirn/sim/thread.hpp"
#include "pirn/sim/var.hpp"

namespace {

namespace sim = pirn::sim;
using order = std::memory_order;
using outcomes = std::set<std::string>;

constexpr int words = 2;
constexpr int added = 100;

struct operation {
  enum class kind : std::uint8_t { load, store, add, fence, plain_read, plain_write };
  kind what;
  int word;
  order in;
  int value;  ///< to be stored

  [[nodiscard]] bool reads() const { return what == kind::load || what == kind::add; }
  [[nodiscard]] bool writes() const { return what == kind::store || what == kind::add; }
  [[nodiscard]] bool acquires() const { return in == order::acquire || in == order::acq_rel || in == order::seq_cst; }
  [[nodiscard]] bool releases() const { return in == order::release || in == order::acq_rel || in == order::seq_cst; }
  [[nodiscard]] bool strict() const { return in == order::seq_cst; }
  [[nodiscard]] bool plain() const { return what == kind::plain_read || what == kind::plain_write; }
};
using program = std::vector<std::vector<operation>>;

/// With `plain`, half of its operations are on a variable that is not atomic.
program random_program(std::uint64_t seed, bool plain) {
  pirn::platform::random numbers(seed);
  const int threads = seed % 2 == 0 ? 2 : 3;
  const int operations = threads == 2 ? 4 : 2;
  program made(static_cast<std::size_t>(threads));
  int value = 0;
  for (auto& thread : made) {
    std::array<int, words> loads{};
    for (int i = 0; i < operations; ++i) {
      std::uint64_t number = numbers.next();
      // A thread sees an old value twice at most.
      while (number % 7 < 2 && loads[number / 16 % words] == 2) {
        number = numbers.next();
      }
      loads[number / 16 % words] += number % 7 < 2 ? 1 : 0;
      if (plain && number / 1024 % 2 != 0) {
        const bool write = number / 2048 % 2 != 0;
        thread.push_back({write ? operation::kind::plain_write : operation::kind::plain_read, 0, order::relaxed, 0});
        continue;
      }
      const auto in = [number](auto... all) {
        const order orders[] = {all...};
        return orders[number / 64 % sizeof...(all)];
      };
      const int word = static_cast<int>(number / 16 % words);
      using kind = operation::kind;
      switch (number % 7) {
        case 0:
        case 1:
          thread.push_back({kind::load, word, in(order::relaxed, order::acquire, order::seq_cst), 0});
          break;
        case 2:
        case 3:
          thread.push_back({kind::store, word, in(order::relaxed, order::release, order::seq_cst), ++value});
          break;
        case 4:
          thread.push_back(
              {kind::add, word, in(order::relaxed, order::acquire, order::release, order::acq_rel, order::seq_cst), 0});
          break;
        default:
          thread.push_back({kind::fence, 0, in(order::acquire, order::release, order::acq_rel, order::seq_cst), 0});
      }
    }
  }
  return made;
}

std::string text(const program& of) {
  static constexpr const char* orders[] = {"relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst"};
  static constexpr const char* kinds[] = {"load", "store", "add", "fence", "read", "write"};
  std::string all;
  for (std::size_t thread = 0; thread < of.size(); ++thread) {
    all += "thread " + std::to_string(thread) + ":";
    for (const operation& each : of[thread]) {
      all += std::string(" ") + kinds[static_cast<int>(each.what)] + " " + "xy"[each.word] + " " +
             std::to_string(each.value) + " " + orders[static_cast<int>(each.in)] + ";";
    }
    all += "\n";
  }
  return all;
}

// ---- what an exploration sees ---------------------------------------------------------------------------------------

sim::result explore(const program& of, bool stale, outcomes& all) {
  return sim::explore(
      [&] {
        std::array<sim::atomic<int>, words> word{};
        sim::var<int> variable(0);
        std::vector<std::string> seen(of.size());
        {
          std::vector<sim::thread> threads;
          for (std::size_t self = 0; self < of.size(); ++self) {
            threads.emplace_back([&, self] {
              for (const operation& each : of[self]) {
                auto& at = word[static_cast<std::size_t>(each.word)];
                switch (each.what) {
                  case operation::kind::load:
                    seen[self] += std::to_string(at.load(each.in)) + ",";
                    break;
                  case operation::kind::store:
                    at.store(each.value, each.in);
                    break;
                  case operation::kind::add:
                    seen[self] += std::to_string(at.fetch_add(added, each.in)) + ",";
                    break;
                  case operation::kind::fence:
                    sim::atomic_thread_fence(each.in);
                    break;
                  case operation::kind::plain_read:
                    static_cast<void>(variable.get());
                    break;
                  case operation::kind::plain_write:
                    variable = 1;
                }
              }
            });
          }
        }
        std::string end;
        for (const std::string& each : seen) {
          end += each + "|";
        }
        for (auto& each : word) {
          end += std::to_string(each.load()) + ",";
        }
        all.insert(end);
      },
      {.preemptions = sim::no_bound, .stale_reads = stale});
}

// ---- what the standard allows ---------------------------------------------------------------------------------------

/// A relation among events: whether one comes before the other.
class relation {
 public:
  static constexpr std::size_t most = 16;
  [[nodiscard]] bool has(std::size_t a, std::size_t b) const { return (after_[a] >> b & 1) != 0; }
  void add(std::size_t a, std::size_t b) { after_[a] |= 1U << b; }
  void add(const relation& other) {
    for (std::size_t i = 0; i < most; ++i) {
      after_[i] |= other.after_[i];
    }
  }
  void close() {
    for (std::size_t via = 0; via < most; ++via) {
      for (std::size_t i = 0; i < most; ++i) {
        after_[i] |= has(i, via) ? after_[via] : 0;
      }
    }
  }
  [[nodiscard]] bool reflexive() const {
    for (std::size_t i = 0; i < most; ++i) {
      if (has(i, i)) {
        return true;
      }
    }
    return false;
  }
  [[nodiscard]] relation then(const relation& next) const {
    relation both;
    for (std::size_t i = 0; i < most; ++i) {
      for (std::size_t via = 0; via < most; ++via) {
        both.after_[i] |= has(i, via) ? next.after_[via] : 0;
      }
    }
    return both;
  }

 private:
  std::array<std::uint32_t, most> after_{};
};

class allowed_outcomes {
 public:
  explicit allowed_outcomes(const program& of) {
    for (int word = 0; word < words; ++word) {
      events_.push_back({operation::kind::store, word, order::relaxed, 0});
      thread_of_.push_back(none);
    }
    for (std::size_t thread = 0; thread < of.size(); ++thread) {
      for (const operation& each : of[thread]) {
        events_.push_back(each);
        thread_of_.push_back(thread);
      }
    }
    threads_ = of.size();
    from_.assign(events_.size(), none);
    for (std::size_t a = 0; a < events_.size(); ++a) {
      for (std::size_t b = a + 1; b < events_.size(); ++b) {
        if (b >= words && (thread_of_[a] == none || thread_of_[a] == thread_of_[b])) {
          sequenced_.add(a, b);
        }
      }
    }
    for (std::size_t word = 0; word < words; ++word) {
      for (std::size_t event = words; event < events_.size(); ++event) {
        if (writes_to(event, word)) {
          changes_[word].push_back(event);
        }
      }
    }
    order_changes(0);
  }
  [[nodiscard]] const outcomes& all() const { return all_; }
  /// Returns whether an execution has a data race.
  [[nodiscard]] bool race() const { return race_; }

 private:
  static constexpr std::size_t none = ~std::size_t{0};
  [[nodiscard]] bool writes_to(std::size_t event, std::size_t word) const {
    return events_[event].writes() && events_[event].word == static_cast<int>(word);
  }

  /// Tries every modification order; the first value of a word is event `word`.
  void order_changes(std::size_t word) {
    if (word == words) {
      modified_ = {};
      for (std::size_t each = 0; each < words; ++each) {
        std::size_t before = each;
        for (const std::size_t event : changes_[each]) {
          modified_.add(before, event);
          before = event;
        }
      }
      read_from(words);
      return;
    }
    auto& all = changes_[word];
    std::ranges::sort(all);
    do {
      order_changes(word + 1);
    } while (std::ranges::next_permutation(all).found);
  }

  /// Tries every value that a read could see.
  void read_from(std::size_t event) {
    if (event == events_.size()) {
      judge();
      return;
    }
    if (!events_[event].reads()) {
      read_from(event + 1);
      return;
    }
    const auto word = static_cast<std::size_t>(events_[event].word);
    const auto& all = changes_[word];
    for (std::size_t i = 0; i <= all.size(); ++i) {
      from_[event] = i == 0 ? word : all[i - 1];
      const bool next = i < all.size() && all[i] == event;  // a read-modify-write reads the value just before
      if (from_[event] != event && (events_[event].what == operation::kind::load || next)) {
        read_from(event + 1);
      }
    }
  }

  void judge() {
    relation reads, executed = sequenced_;
    for (std::size_t each = words; each < events_.size(); ++each) {
      if (events_[each].reads()) {
        reads.add(from_[each], each);
      }
    }
    executed.add(reads);
    executed.add(modified_);
    executed.close();
    if (executed.reflexive()) {  // no load sees a later store, and stores come in the order of execution
      return;
    }
    relation changed = modified_, coherence = reads;
    changed.close();
    coherence.add(changed);
    for (std::size_t read = words; read < events_.size(); ++read) {
      for (std::size_t write = 0; write < events_.size(); ++write) {
        if (events_[read].reads() && read != write && changed.has(from_[read], write)) {
          coherence.add(read, write);
        }
      }
    }
    coherence.close();
    const relation synchronized = synchronizations();
    relation happens = sequenced_;
    happens.add(synchronized);
    happens.close();
    // The total order is also the order of execution.
    executed.add(total_order(synchronized, happens, coherence));
    executed.close();
    if (!happens.then(coherence).reflexive() && !happens.reflexive() && !executed.reflexive()) {
      all_.insert(outcome());
      race_ = race_ || races(happens);
    }
  }

  [[nodiscard]] relation synchronizations() const {
    relation all;
    for (std::size_t read = words; read < events_.size(); ++read) {
      if (!events_[read].reads()) {
        continue;
      }
      // The head of a release sequence that it reads from, or the fence before that head.
      for (std::size_t head = from_[read]; head != none; head = from_[head]) {
        for (std::size_t first = words; first < events_.size(); ++first) {
          const bool fence = events_[first].what == operation::kind::fence && sequenced_.has(first, head);
          if (!(events_[first].releases() && (first == head || fence))) {
            continue;
          }
          for (std::size_t second = words; second < events_.size(); ++second) {
            const bool behind = events_[second].what == operation::kind::fence && sequenced_.has(read, second);
            if (events_[second].acquires() && (second == read || behind)) {
              all.add(first, second);
            }
          }
        }
      }
    }
    return all;
  }

  /// Returns which sequentially consistent events must precede which others in their total order.
  [[nodiscard]] relation total_order(const relation& synchronized, const relation& happens,
                                     const relation& coherence) const {
    relation strongly = sequenced_;
    strongly.add(sequenced_.then(happens).then(sequenced_));
    const auto strict_fence = [this](std::size_t each) {
      return each >= words && events_[each].strict() && events_[each].what == operation::kind::fence;
    };
    const auto strict_access = [this](std::size_t each) {
      return each >= words && events_[each].strict() && events_[each].what != operation::kind::fence;
    };
    for (std::size_t a = words; a < events_.size(); ++a) {
      for (std::size_t b = words; b < events_.size(); ++b) {
        if (synchronized.has(a, b) && strict_access(a) && strict_access(b)) {
          strongly.add(a, b);
        }
      }
    }
    strongly.close();
    relation total;
    for (std::size_t a = words; a < events_.size(); ++a) {
      for (std::size_t b = words; b < events_.size(); ++b) {
        if (events_[a].strict() && events_[b].strict() && strongly.has(a, b)) {
          total.add(a, b);
        }
      }
    }
    for (std::size_t a = 0; a < events_.size(); ++a) {
      for (std::size_t b = 0; b < events_.size(); ++b) {
        if (!coherence.has(a, b)) {
          continue;
        }
        for (std::size_t first = words; first < events_.size(); ++first) {
          for (std::size_t second = words; second < events_.size(); ++second) {
            const bool before = (first == a && strict_access(a)) || (strict_fence(first) && happens.has(first, a));
            const bool behind = (second == b && strict_access(b)) || (strict_fence(second) && happens.has(b, second));
            if (before && behind) {
              total.add(first, second);
            }
          }
        }
      }
    }
    return total;
  }

  [[nodiscard]] bool races(const relation& happens) const {
    for (std::size_t a = words; a < events_.size(); ++a) {
      for (std::size_t b = words; b < a; ++b) {
        const bool written =
            events_[a].what == operation::kind::plain_write || events_[b].what == operation::kind::plain_write;
        if (events_[a].plain() && events_[b].plain() && written && !happens.has(a, b) && !happens.has(b, a)) {
          return true;
        }
      }
    }
    return false;
  }

  int value_of(std::size_t write) const {
    return events_[write].what == operation::kind::add ? value_of(from_[write]) + added : events_[write].value;
  }
  [[nodiscard]] std::string outcome() const {
    std::string end;
    for (std::size_t thread = 0; thread < threads_; ++thread) {
      for (std::size_t each = words; each < events_.size(); ++each) {
        if (thread_of_[each] == thread && events_[each].reads()) {
          end += std::to_string(value_of(from_[each])) + ",";
        }
      }
      end += "|";
    }
    for (std::size_t word = 0; word < words; ++word) {
      end += std::to_string(value_of(changes_[word].empty() ? word : changes_[word].back())) + ",";
    }
    return end;
  }

  std::vector<operation> events_;
  std::vector<std::size_t> thread_of_;
  std::vector<std::size_t> from_;
  std::size_t threads_ = 0;
  std::array<std::vector<std::size_t>, words> changes_;
  relation sequenced_, modified_;
  outcomes all_;
  bool race_ = false;
};

std::uint64_t programs() {
  const char* const more = std::getenv("PIRN_SIM_PROGRAMS");
  return more != nullptr ? std::strtoull(more, nullptr, 10) : 1000;
}

TEST(memory_model, is_that_of_the_standard) {
  for (std::uint64_t seed = 1; seed <= programs(); ++seed) {
    const program of = random_program(seed, false);
    outcomes all;
    const sim::result found = explore(of, true, all);
    EXPECT_TRUE(found && found.complete) << found.text();
    EXPECT_EQ(all, allowed_outcomes(of).all()) << "seed " << seed << "\n" << text(of);
  }
}

TEST(memory_model, has_the_data_races_of_the_standard) {
  std::uint64_t races = 0;
  const std::uint64_t most = programs() / 25;  // the report of a race takes long
  for (std::uint64_t seed = 1; seed <= most; ++seed) {
    const program of = random_program(seed, true);
    const bool race = allowed_outcomes(of).race();
    races += race ? 1 : 0;
    outcomes all;
    const sim::result found = explore(of, true, all);
    EXPECT_EQ(found.what, race ? sim::outcome::data_race : sim::outcome::passed) << "seed " << seed << "\n" << text(of);
    EXPECT_TRUE(race || explore(of, false, all)) << "seed " << seed << "\n" << text(of);
  }
  EXPECT_GT(races, most / 10);
  EXPECT_LT(races, most - most / 10);
}

}  // namespace
