// Finds calls and functions that may suspend the fiber that runs them.
#pragma once

#include <cstdint>

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/PassManager.h"

namespace pirn::plugin {

/// The assumption about unknown functions.
enum class unknown_calls : std::uint8_t { assume_nonsuspending, assume_suspending };

/// The functions of a module that may suspend. A call may suspend if it is a switch, has the convention that preserves
/// nothing, is indirect, or calls a function that may suspend. A function of this module may suspend if it contains
/// such a call. A function that is only declared may suspend if it is annotated "pirn::suspends", or belongs to pirn
/// and is not `leaf`. Otherwise it may not if it is `leaf` or part of the C or C++ library; `unknown` decides about the
/// rest.
class suspension {
 public:
  suspension(llvm::Module& module, llvm::ModuleAnalysisManager& analyses, unknown_calls unknown);

  bool may_suspend(const llvm::CallBase& call) const;
  bool may_suspend(const llvm::Function& function) const { return suspending_.contains(&function); }

 private:
  llvm::SmallPtrSet<const llvm::Function*, 32> suspending_;
};

/// Returns the function that a call names, also through an alias; null if it names none.
llvm::Function* named_callee(const llvm::CallBase& call);
/// Returns whether a symbol belongs to the library or runtime of the language.
bool is_of_language_runtime(llvm::StringRef symbol);
/// Returns a function's name as in the source, without its parameters and the inline namespace of pirn's build.
std::string readable_name(llvm::StringRef symbol);

}  // namespace pirn::plugin
