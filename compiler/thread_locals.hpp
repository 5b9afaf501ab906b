// The passes about addresses of thread-local variables.
#pragma once

#include "llvm/IR/PassManager.h"
#include "suspension.hpp"

namespace pirn::plugin {

/// What the user wants the report to presume.
unknown_calls presumed_of_unknown_calls();

/// Has each use of a thread-local variable's name ask an accessor for the address, and tells optimizers of functions
/// declared `const` that their results depend on the thread. What is inlined later is right with that, whichever
/// optimizations follow.
class ask_for_addresses : public llvm::PassInfoMixin<ask_for_addresses> {
 public:
  static llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

/// Takes the accessors back out of functions that cannot suspend. Nothing may be inlined afterwards.
class stop_asking : public llvm::PassInfoMixin<stop_asking> {
 public:
  static llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

/// Warns of addresses that live across what may suspend.
class report_stale_addresses : public llvm::PassInfoMixin<report_stale_addresses> {
 public:
  static llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
  static bool isRequired() { return true; }
};

}  // namespace pirn::plugin
