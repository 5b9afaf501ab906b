// Reads and writes files of facts about the stack of functions.
#include "stack_facts.hpp"

#include <algorithm>

#include "llvm/ADT/SmallVector.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

namespace pirn::plugin {

namespace {

using llvm::StringRef;

/// Returns the entry for `function` in a map by name: by its own name, then by its name in the source, then by a
/// pattern.
template <class Value>
const Value* look_up(const std::map<std::string, Value>& in, StringRef function) {
  if (const auto at = in.find(function.str()); at != in.end()) {
    return &at->second;
  }
  const std::string source = llvm::demangle(function);
  if (const auto at = in.find(source); at != in.end()) {
    return &at->second;
  }
  for (const auto& [name, value] : in) {
    if (name.find('*') == std::string::npos) {
      continue;
    }
    if (auto pattern = llvm::GlobPattern::create(name)) {
      if (pattern->match(function) || pattern->match(source)) {
        return &value;
      }
    } else {
      llvm::consumeError(pattern.takeError());
    }
  }
  return nullptr;
}

std::vector<StringRef> split_list(StringRef text) {
  // A comma within a parameter list does not end an item.
  std::vector<StringRef> found;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t at = 0; at <= text.size(); ++at) {
    if (at == text.size() || (text[at] == ',' && depth == 0)) {
      if (const StringRef item = text.slice(begin, at).trim(); !item.empty()) {
        found.push_back(item);
      }
      begin = at + 1;
    } else if (text[at] == '(' || text[at] == '<') {
      ++depth;
    } else if (text[at] == ')' || text[at] == '>') {
      --depth;
    }
  }
  return found;
}

}  // namespace

bool stack_facts::read_line(StringRef line) {
  StringRef rest;
  StringRef keyword;
  std::tie(keyword, rest) = line.split(' ');
  rest = rest.trim();
  std::uint64_t bytes = 0;
  if ((keyword == "bytes" || keyword == "frame") && (rest.consumeInteger(10, bytes) || !rest.consume_front(" "))) {
    return false;
  }
  const auto [name, list] = rest.split(" : ");
  const std::string function = name.trim().rtrim(" :").str();
  if (function.empty()) {
    return false;
  }
  if (keyword == "bytes") {
    facts_[function] = {false, bytes};
  } else if (keyword == "noreturn") {
    facts_[function] = {true, 0};
  } else if (keyword == "calls") {
    for (const StringRef each : split_list(list)) {
      targets_[function].push_back(each.str());
    }
    return !targets_[function].empty();
  } else if (keyword == "frame") {
    stack_frame& frame = summaries_[function];  // an inline function has several: the worst of each
    frame.bytes = std::max(frame.bytes, bytes);
    for (StringRef each : split_list(list)) {
      const bool last = each.consume_front("^");
      frame.calls.push_back({each.str(), last});
    }
  } else if (keyword == "refused") {
    summaries_[function].why_none = list.str();
  } else {
    return false;
  }
  return true;
}

void stack_facts::add_unless_known(StringRef line) {
  stack_facts one;
  one.read_line(line);
  facts_.insert(one.facts_.begin(), one.facts_.end());
}

bool stack_facts::read_file(StringRef path, std::string& error) {
  auto text = llvm::MemoryBuffer::getFile(path, true);
  if (!text) {
    error = ("cannot read " + path + ": " + text.getError().message()).str();
    return false;
  }
  llvm::SmallVector<StringRef, 64> lines;
  (*text)->getBuffer().split(lines, '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    StringRef line = lines[i];
    if (line.starts_with("#")) {
      continue;
    }
    line = line.split(" #").first.trim();
    if (!line.empty() && !read_line(line)) {
      error = (path + ":" + llvm::Twine(i + 1) + ": not a stack fact: " + line).str();
      return false;
    }
  }
  return true;
}

bool stack_facts::read(StringRef path, std::string& error) {
  if (!llvm::sys::fs::is_directory(path)) {
    return read_file(path, error);
  }
  std::vector<std::string> files;
  std::error_code failure;
  for (llvm::sys::fs::recursive_directory_iterator each(path, failure), end; each != end && !failure;
       each.increment(failure)) {
    if (StringRef(each->path()).ends_with(".stack")) {
      files.push_back(each->path());
    }
  }
  if (failure) {
    error = ("cannot read " + path + ": " + failure.message()).str();
    return false;
  }
  std::sort(files.begin(), files.end());  // so that messages do not depend on the folder's order
  return std::all_of(files.begin(), files.end(), [&](const std::string& file) { return read_file(file, error); });
}

const stack_facts::fact* stack_facts::fact_for(StringRef function) const { return look_up(facts_, function); }

const std::vector<std::string>* stack_facts::targets_in(StringRef function) const {
  return look_up(targets_, function);
}

const stack_frame* stack_facts::summary_of(StringRef function) const {
  const auto at = summaries_.find(function.str());
  return at != summaries_.end() ? &at->second : nullptr;
}

std::string summary_text(const stack_frames& of) {
  std::string text = "# Written by pirn's compiler plugin for one object file.\n";
  for (const auto& [name, frame] : of) {
    if (!frame.why_none.empty()) {
      text += "refused " + name + " : " + frame.why_none + "\n";
      continue;
    }
    text += "frame " + std::to_string(frame.bytes) + " " + name + " :";
    const char* before = " ";
    for (const stack_call& call : frame.calls) {
      text += before + std::string(call.replaces_caller ? "^" : "") + call.callee;
      before = ", ";
    }
    text += "\n";
  }
  return text;
}

}  // namespace pirn::plugin
