// Computes the bounds of functions from frames, facts and summaries, along all paths of calls.
#include "stack_graph.hpp"

#include <algorithm>

#include "llvm/ADT/StringRef.h"
#include "llvm/Demangle/Demangle.h"

namespace pirn::plugin {

const stack_bound& stack_graph::of(const std::string& function) {
  if (const auto at = known_.find(function); at != known_.end()) {
    return at->second;
  }
  stack_bound found = work_out(function);
  return known_[function] = std::move(found);
}

stack_bound stack_graph::work_out(const std::string& function) {
  if (llvm::StringRef name = function; name.consume_front("asm ")) {
    return {std::stoull(name.str()), "", {}};
  }
  if (const stack_facts::fact* const fact = facts_.fact_for(function)) {
    return {fact->noreturn ? 0 : fact->bytes, "", {{function, fact->bytes}}};
  }
  if (const auto at = here_.find(function); at != here_.end()) {
    return of_frame(function, at->second);
  }
  if (const stack_frame* const summary = facts_.summary_of(function)) {
    return of_frame(function, *summary);
  }
  if (otherwise_) {
    return {otherwise_, "", {{function, *otherwise_}}};
  }
  return {std::nullopt,
          "its code is not in this file, and neither a summary nor an assumption says what it uses",
          {{function, 0}}};
}

stack_bound stack_graph::of_frame(const std::string& function, const stack_frame& frame) {
  stack_bound result{std::nullopt, frame.why_none, {{function, frame.bytes}}};
  if (!frame.why_none.empty()) {
    return result;
  }
  if (const auto at = std::find(under_way_.begin(), under_way_.end(), function); at != under_way_.end()) {
    result.why_none = "it is recursive: ";
    for (auto each = at; each != under_way_.end(); ++each) {
      result.why_none += shown(*each) + " > ";
    }
    result.why_none += shown(function);
    return result;
  }
  std::vector<stack_call> calls = frame.calls;
  if (frame.indirect) {
    const std::vector<std::string>* const targets = facts_.targets_in(function);
    if (targets == nullptr) {
      result.why_none = "it calls through a pointer, and nothing says what that may point to";
      return result;
    }
    for (const std::string& each : *targets) {
      calls.push_back({each, frame.indirect_is_last});
    }
  }
  under_way_.push_back(function);
  std::uint64_t deepest = frame.bytes;
  std::vector<stack_step> path;
  for (const stack_call& call : calls) {
    // Results from within a cycle are kept too: a function from which a cycle can be reached has no bound, wherever the
    // request begins. Only the cycle that `why_none` shows depends on that.
    const stack_bound& below = of(call.callee);
    if (!below.bytes) {
      result.why_none = below.why_none;
      result.path.insert(result.path.end(), below.path.begin(), below.path.end());
      under_way_.pop_back();
      return result;
    }
    const std::uint64_t reaches = *below.bytes + (call.replaces_caller ? 0 : frame.bytes);
    if (reaches > deepest || (reaches == deepest && path.empty())) {
      deepest = reaches;
      path = below.path;
    }
  }
  under_way_.pop_back();
  result.bytes = deepest;
  result.path.insert(result.path.end(), path.begin(), path.end());
  return result;
}

std::string shown(const std::string& function) {
  std::string text = llvm::demangle(llvm::StringRef(function).split('@').first);
  // The inline namespace of pirn's binary interface, which does not appear in sources.
  for (std::size_t at = 0; (at = text.find("pirn::v1_", at)) != std::string::npos;) {
    const std::size_t begin = at + 6;
    const std::size_t end = text.find("::", begin);
    at = begin;
    if (end == std::string::npos) {
      break;
    }
    text.erase(begin, end + 2 - begin);
  }
  return text;
}

std::string shown(const std::vector<stack_step>& path) {
  std::string text;
  for (const stack_step& each : path) {
    text += (text.empty() ? "" : " > ") + shown(each.function) + " (" + std::to_string(each.bytes) + ")";
  }
  return text;
}

}  // namespace pirn::plugin
