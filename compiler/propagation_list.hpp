// Functions that are named in a list file. They have the convention in every file that is compiled with that list.
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

/// A list with one name or pattern a line; `!` before one excludes it, `#` begins a comment. A name is written as the
/// linker knows it or as in the source, with or without parameters.
class name_list {
 public:
  static llvm::Expected<name_list> read(llvm::StringRef path);
  /// Returns whether the list names the symbol; the last line that matches it decides.
  bool names(llvm::StringRef symbol) const;

 private:
  struct line {
    llvm::StringRef text;
    bool excludes = false;
    llvm::GlobPattern pattern;
  };
  std::unique_ptr<llvm::MemoryBuffer> text_;  // lines point into it
  std::deque<std::string> patterns_;          // patterns of lines point into it
  std::vector<line> lines_;
};

/// The ending of the name of every listed function, so that a file that was compiled with another list does not link.
inline constexpr const char* listed_ending = ".preserve_none";
/// The ending of the name of its twin with the ordinary convention. The function's address is that of the twin.
inline constexpr const char* ordinary_ending = ".ordinary";

/// Gives the convention to the functions that the list names, defined here or not. A function that cannot have it is an
/// error of the compilation.
bool apply_list(llvm::Module& module, const name_list& list);

/// Reports an error for each call of a listed function in a caller that must not call it. For the end of a pipeline.
void check_listed_calls(const llvm::Module& module);

}  // namespace pirn::plugin
