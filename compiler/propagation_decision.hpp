// Decides which functions get the convention, and gives the reasons for the others.
#pragma once

#include <string>
#include <vector>

#include "llvm/IR/Function.h"
#include "llvm/IR/PassManager.h"

namespace pirn::plugin {

/// The decision about a function that calls, directly or through others, one that preserves no register.
struct decision {
  llvm::Function* function = nullptr;
  /// Whether it gets the convention.
  bool propagated = false;
  bool in_long_chain = false;  ///< it preserves registers, and so does all that it calls on the way to the switch
  /// The number of calls that preserve no register in a call of it, by the frequencies that the compiler assumes.
  double switches = 0;
  /// The reason why it does not get it; empty if it does.
  std::string reason;
};

/// Decides about every function of the module that may switch, in the order of the module. Changes nothing.
std::vector<decision> decide(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);

}  // namespace pirn::plugin
