// Bounds as JSON: one object a line for each function, appended to a file that many compilers share.
#pragma once

#include <set>
#include <string>

#include "llvm/IR/Module.h"
#include "llvm/Support/JSON.h"
#include "stack_frames.hpp"
#include "stack_graph.hpp"

namespace pirn::plugin {

class stack_report {
 public:
  /// Adds a function that is the first one of a fiber.
  void add_entry(const std::string& function) { entries_.insert(function); }
  void add(const std::string& function, const stack_frame& frame, const stack_bound& bound);
  /// Appends one line for each function.
  void append_to(const std::string& file, const llvm::Module& module);

 private:
  std::set<std::string> entries_;
  std::vector<llvm::json::Object> rows_;
};

}  // namespace pirn::plugin
