// What is known of the stack of functions whose code is not at hand: from files.
//
// A file has one fact a line; what follows a # that begins a word is a comment. Functions are named as in object files
// or as in the source (pirn::event::wait()), and * stands for anything.
//   bytes 96 memcpy            a call uses so much, from its return address on, with all that it calls
//   noreturn abort             it does not return: what it uses does not matter
//   calls visit : a, b         what the calls through pointers in `visit` may go to
// The plugin itself writes two more, where it is asked for summaries:
//   frame 56 f : g, ^h         its own frame and what it calls, ^ where that takes the place of its frame
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

  /// Adds a file, or all files `*.stack` of a folder. False, with the reason, if it cannot be read or understood.
  bool read(llvm::StringRef path, std::string& error);
  /// The fact that is stated of the function; null if there is none.
  const fact* fact_for(llvm::StringRef function) const;
  void annotate(llvm::StringRef function, const fact& what) { facts_[function.str()] = what; }
  /// What calls through pointers in it may go to, null if nobody has said.
  const std::vector<std::string>* targets_in(llvm::StringRef function) const;
  /// What a summary has of it; null if nothing.
  const stack_frame* summary_of(llvm::StringRef function) const;

 private:
  bool read_file(llvm::StringRef path, std::string& error);
  bool read_line(llvm::StringRef line);

  std::map<std::string, fact> facts_;
  std::map<std::string, std::vector<std::string>> targets_;
  stack_frames summaries_;
};

/// Writes the facts of a file's functions. What is local to the file gets `local_prefix`.
std::string summary_text(const stack_frames& of);

}  // namespace pirn::plugin
