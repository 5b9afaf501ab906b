// The passes about addresses of thread-local variables.
#pragma once

#include "llvm/IR/PassManager.h"
#include "suspension.hpp"

namespace pirn::plugin {

/// Returns the user's assumption about unknown calls, for the report.
unknown_calls presumed_of_unknown_calls();

/// Inserts a barrier at each use of a thread-local variable's name: a call of an accessor that returns the address.
/// Also tells optimizers that the results of functions declared `const` depend on the thread. Inlining and all later
/// optimizations keep to that.
class insert_barriers : public llvm::PassInfoMixin<insert_barriers> {
 public:
  static llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

/// Lowers the barriers to direct accesses in functions that cannot suspend. Nothing may be inlined afterwards.
class lower_barriers : public llvm::PassInfoMixin<lower_barriers> {
 public:
  static llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

/// Warns of addresses that are used after a call that may suspend.
class report_stale_addresses : public llvm::PassInfoMixin<report_stale_addresses> {
 public:
  static llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace pirn::plugin
