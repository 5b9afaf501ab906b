// Functions that are named in a file and have the convention in every file that is compiled with that list.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/GlobPattern.h"
#include "llvm/Support/MemoryBuffer.h"

namespace pirn::plugin {

/// A list: one name or pattern a line, `!` before one excludes, `#` begins a comment. A name is as the linker knows it,
/// or as a person writes it, with or without its parameters.
class name_list {
 public:
  static llvm::Expected<name_list> read(llvm::StringRef path);
  /// Whether the list names the symbol; the last line that matches it decides.
  bool names(llvm::StringRef symbol) const;

 private:
  struct line {
    llvm::StringRef text;
    bool excludes = false;
    llvm::GlobPattern pattern;
  };
  std::unique_ptr<llvm::MemoryBuffer> text_;  // into which lines point
  std::deque<std::string> patterns_;          // into which what is made of them points
  std::vector<line> lines_;
};

/// What the name of every listed function ends with, so that a file which was compiled with another list does not link.
inline constexpr const char* listed_ending = ".preserve_none";
/// What the name of its twin with the ordinary convention ends with, to which its address leads.
inline constexpr const char* ordinary_ending = ".ordinary";

/// Gives the convention to what the list names, defined here or not. What cannot have it is an error of the
/// compilation.
bool apply_list(llvm::Module& module, const name_list& list);

/// Reports, as errors, calls of listed functions from where they would go wrong. For the end of a pipeline.
void check_listed_calls(const llvm::Module& module);

}  // namespace pirn::plugin
