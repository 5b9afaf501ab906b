// Which functions get the convention, and why the others do not.
#pragma once

#include <string>
#include <vector>

#include "llvm/IR/Function.h"
#include "llvm/IR/PassManager.h"

namespace pirn::plugin {

/// What was decided about a function that calls, itself or through others, one that preserves no register.
struct decision {
  llvm::Function* function = nullptr;
  /// Whether it gets the convention.
  bool propagated = false;
  /// How often a call of it leads to a call that preserves no register, by the frequencies that the compiler assumes.
  double switches = 0;
  /// Why it does not get it; empty if it does.
  std::string reason;
};

/// Decides about every function of the module that may switch, in the order of the module. Changes nothing.
std::vector<decision> decide(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);

}  // namespace pirn::plugin
