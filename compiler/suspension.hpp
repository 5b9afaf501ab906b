// Which calls and functions may suspend the fiber that runs them.
#pragma once

#include <cstdint>

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/PassManager.h"

namespace pirn::plugin {

/// What is presumed of functions of which nothing is known.
enum class unknown_calls : std::uint8_t { assume_nonsuspending, assume_suspending };

/// The functions of a module that may suspend, and what that is concluded from. A call may suspend if it is a switch,
/// or in the convention that preserves nothing, or indirect, or of a function that may. A function of this module may
/// if it contains such a call. A function that is only declared may if it is annotated "pirn::suspends" or is one of
/// pirn's that is not `leaf`; else it may not if it is `leaf` or of the C or C++ library, and `unknown` decides on the
/// others.
class suspension {
 public:
  suspension(llvm::Module& module, llvm::ModuleAnalysisManager& analyses, unknown_calls unknown);

  bool may_suspend(const llvm::CallBase& call) const;
  bool may_suspend(const llvm::Function& function) const { return suspending_.contains(&function); }

 private:
  llvm::SmallPtrSet<const llvm::Function*, 32> suspending_;
};

/// The function that a call names, also through an alias; null if it names none.
llvm::Function* named_callee(const llvm::CallBase& call);
/// Whether a symbol is one of what the language's own library and runtime are made of.
bool is_of_language_runtime(llvm::StringRef symbol);
/// A function's name as in the source, without its parameters and the inline namespace of pirn's build.
std::string readable_name(llvm::StringRef symbol);

}  // namespace pirn::plugin
