// Turns the recorded steps of an execution into lines that a person can follow.
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "sim/execution.hpp"
#include "sim/symbols.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

namespace {

/// Returns whether the step is at a variable that is not atomic.
bool plain(const recorded_step& step) { return step.kind == step_kind::read || step.kind == step_kind::write; }

/// The place in a program that asks for a step.
struct place {
  std::string where;  ///< function and line of the innermost frame that is neither pirn's nor the standard library's
  std::string operation;  ///< the function of pirn that it called
};

place place_of(const recorded_step& step, const symbols& known) {
  place found;
  for (std::size_t i = 0; i < step.frame_count; ++i) {
    for (const frame& each : known.at(step.frames[i])) {
      if (each.ours) {
        if (!each.inside) {
          found.operation = each.function;
        }
      } else if (!each.library) {
        found.where = each.line.empty() ? each.function : each.line + " (" + each.function + ")";
        return found;
      }
    }
  }
  return found;
}

std::size_t name_of(std::uint64_t fiber, fiber_names& fibers) {
  return fibers.try_emplace(fiber, fibers.size() + 1).first->second;
}

std::string who_does(const recorded_step& step, fiber_names& fibers) {
  if (step.fiber == 0) {
    return step.thread_name;
  }
  return "fiber " + std::to_string(name_of(step.fiber, fibers)) +
         (step.fiber_name.empty() ? "" : " \"" + step.fiber_name + "\"") + " on " + step.thread_name;
}

/// Returns a value as text; empty if its type is unknown.
std::string value_text(std::uint64_t bits, value_type type) {
  using enum platform::checked::value_kind;
  if (type.size == 0) {
    return {};
  }
  const auto unused = static_cast<unsigned>(8 * (sizeof bits - type.size));
  std::ostringstream text;
  switch (type.kind) {
    case truth:
      text << (bits != 0 ? "true" : "false");
      break;
    case natural:
      text << bits;
      break;
    case integer:
      text << (static_cast<std::int64_t>(bits << unused) >> unused);
      break;
    case real:
      type.size == sizeof(float) ? text << std::bit_cast<float>(static_cast<std::uint32_t>(bits))
                                 : text << std::bit_cast<double>(bits);
      break;
    case address:
      if (bits == 0) {
        return "null";
      }
      [[fallthrough]];
    case raw:
      text << "0x" << std::hex << bits;
      break;
  }
  return std::move(text).str();
}

/// Describes a step; steps with the same text share a line.
std::string what_it_does(const recorded_step& step, const place& at) {
  switch (step.kind) {
    case step_kind::start:
      return "starts thread " + std::to_string(step.value);
    case step_kind::end:
      return "ends";
    case step_kind::join:
      return "joins thread " + std::to_string(step.value);
    case step_kind::fault:
      return std::string(fault_kinds[step.value].text) + (at.where.empty() ? "" : ", at " + at.where);
    default:
      break;
  }
  if (step.by_daemon) {
    return "delivers what was sent";
  }
  if (step.kind == step_kind::abort || step.kind == step_kind::crash) {
    return std::string(step.kind == step_kind::abort ? "aborts" : "crashes") +
           (at.operation.empty() ? "" : " in " + at.operation) + (at.where.empty() ? "" : ", at " + at.where);
  }
  if (at.where.empty()) {
    return step.fiber == 0 ? "schedules" : "begins or ends";
  }
  std::string text = at.operation;
  if (text.empty()) {  // a variable or an atomic of the program
    text = std::string(to_string(step.kind)) + " of word " + std::to_string(step.word);
    const std::string value = value_text(step.value, step.type);
    const bool changes =
        step.kind == step_kind::store || step.kind == step_kind::change || step.kind == step_kind::write;
    text += value.empty() ? "" : (changes ? ", to " : ", which is ") + value;
  }
  return text + ", at " + at.where;
}

std::string time_text(platform::time_point when, platform::time_point first) {
  char text[32];
  static_cast<void>(
      std::snprintf(text, sizeof text, "%.3f ms", std::chrono::duration<double, std::milli>(when - first).count()));
  return text;
}

}  // namespace

namespace {

/// Returns the address in a line of a backtrace, "    #1 0x5566 ...", or 0 without one; `begin` is its position. The
/// address is one behind the call, or behind the beginning of a function.
std::uintptr_t address_in(const std::string& line, std::size_t& begin) {
  const std::size_t number = line.find_first_not_of(' ');
  begin = line.find("0x");
  return number != std::string::npos && line[number] == '#' && begin != std::string::npos
             ? std::strtoull(line.c_str() + begin, nullptr, 16) + (line.find("+0x0 (") != std::string::npos ? 1 : 0)
             : 0;
}

}  // namespace

std::string with_lines(const std::string& state) {
  std::vector<std::string> lines;
  std::vector<std::uintptr_t> addresses;
  std::istringstream in(state);
  std::size_t begin = 0;
  for (std::string line; std::getline(in, line);) {
    addresses.push_back(address_in(line, begin));
    lines.push_back(std::move(line));
  }
  const symbols known(addresses);
  std::string text;
  for (const std::string& line : lines) {
    const std::vector<frame>& found = known.at(address_in(line, begin));
    if (found.empty()) {
      text += line + "\n";
    }
    for (const frame& each : found) {
      if (!each.inside && !each.library) {
        text += line.substr(0, begin) + each.function + (each.line.empty() ? "" : " at " + each.line) + "\n";
      }
    }
  }
  return text;
}

std::string with_names(const std::string& text, fiber_names& fibers, bool all) {
  constexpr std::string_view before = "fiber ";
  std::string named;
  std::size_t done = 0;
  for (std::size_t at; (at = text.find(before, done)) != std::string::npos;) {
    at += before.size();
    named += text.substr(done, at - done);
    char* end = nullptr;
    const std::uint64_t number = std::strtoull(text.c_str() + at, &end, 10);
    const auto after = static_cast<std::size_t>(end - text.c_str());
    done = after > at && (all || fibers.contains(number)) ? after : at;
    named += done != at ? std::to_string(name_of(number, fibers)) : "";
  }
  return named + text.substr(done);
}

symbols symbols_of(const std::vector<recorded_step>& steps) {
  std::vector<std::uintptr_t> addresses;
  for (const recorded_step& each : steps) {
    addresses.insert(addresses.end(), each.frames, each.frames + each.frame_count);
  }
  return symbols(std::move(addresses));
}

std::string race_text(const std::vector<recorded_step>& steps, const symbols& known, fiber_names& fibers) {
  const auto last = std::ranges::find_if(steps.rbegin(), steps.rend(), plain);
  const auto first = std::find_if(last, steps.rend(), [&](const recorded_step& each) {
    return plain(each) && each.word == last->word && each.thread_name != last->thread_name &&
           (each.kind == step_kind::write || last->kind == step_kind::write);
  });
  if (first == steps.rend()) {
    return {};
  }
  std::string text;
  for (const recorded_step* each : {&*first, &*last}) {
    const std::string where = place_of(*each, known).where;
    text += std::string(text.empty() ? "" : " and ") + "a " + to_string(each->kind) + " by " + who_does(*each, fibers) +
            (where.empty() ? "" : ", at " + where + ",");
  }
  return text;
}

std::string trace_text(const std::vector<recorded_step>& steps, const symbols& known, fiber_names& fibers,
                       std::size_t max_lines) {
  std::vector<std::string> lines;
  std::string last;
  place before;
  unsigned operations = 0;
  const auto end_line = [&] {
    if (operations > 1) {
      lines.back() += " (" + std::to_string(operations) + " steps)";
    }
    operations = 0;
  };
  for (const recorded_step& each : steps) {
    if (each.by_daemon && each.kind != step_kind::socket) {
      continue;  // other steps there matter only to the receivers of events
    }
    std::string line;
    if (each.kind == step_kind::time_passes) {
      line = "  time passes, to " + time_text(each.when, beginning);
    } else {
      place at = place_of(each, known);
      if (at.operation.empty() && at.where == before.where && !plain(each)) {
        at.operation = before.operation;  // the compiler has left no trace of the operation in this part
      }
      line = "  " + who_does(each, fibers) + ": " + what_it_does(each, at);
      before = std::move(at);
    }
    if (line == last) {
      ++operations;
      continue;
    }
    end_line();
    lines.push_back(line);
    last = std::move(line);
    operations = 1;
  }
  end_line();
  std::string text;
  const std::size_t left_out = lines.size() > max_lines ? lines.size() - max_lines : 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (left_out != 0 && i == max_lines / 2) {
      text += "  ... " + std::to_string(left_out) + " more lines ...\n";
      i += left_out;
    }
    text += lines[i] + "\n";
  }
  return text;
}

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
