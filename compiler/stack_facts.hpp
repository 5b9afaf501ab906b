// Facts from files about the stack of functions whose code is not at hand.
//
// A file has one fact a line; a # at the beginning of a word begins a comment. Functions are named as in object files
// or as in the source (pirn::event::wait()), and * stands for any text.
//   bytes 96 memcpy            a call uses this many bytes, from its return address on, with all that it calls
//   noreturn abort             it does not return: its use of the stack does not matter
//   calls visit : a, b         the possible targets of calls through pointers in `visit`
// The plugin itself writes two more, if it is asked for summaries:
//   frame 56 f : g, ^h         its own frame and its callees, ^ before one that replaces its frame
//   refused f : why
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "llvm/ADT/StringRef.h"
#include "stack_frames.hpp"

namespace pirn::plugin {

class stack_facts {
 public:
  struct fact {
    bool noreturn = false;
    std::uint64_t bytes = 0;
  };

  /// Adds a file, or all files `*.stack` of a folder. Returns false, with the reason, if one cannot be read or
  /// understood.
  bool read(llvm::StringRef path, std::string& error);
  /// Returns the fact about the function; null without one.
  const fact* fact_for(llvm::StringRef function) const;
  void annotate(llvm::StringRef function, const fact& what) { facts_[function.str()] = what; }
  /// Adds a line of a file of facts, unless there is one for that name or pattern.
  void add_unless_known(llvm::StringRef line);
  /// Returns the possible targets of calls through pointers in it; null if no file gives them.
  const std::vector<std::string>* targets_in(llvm::StringRef function) const;
  /// Returns the frame that a summary gives for it; null without one.
  const stack_frame* summary_of(llvm::StringRef function) const;

 private:
  bool read_file(llvm::StringRef path, std::string& error);
  bool read_line(llvm::StringRef line);

  std::map<std::string, fact> facts_;
  std::map<std::string, std::vector<std::string>> targets_;
  stack_frames summaries_;
};

/// Returns the facts about a file's functions, as text.
std::string summary_text(const stack_frames& of);

}  // namespace pirn::plugin
