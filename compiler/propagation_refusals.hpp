// The functions that are refused the convention: by their signature, their body, a call or a caller.
#pragma once

#include <string>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

namespace pirn::plugin {

/// Returns the reason why a function with this signature cannot have the convention, or an empty string. The answer
/// depends only on the content of each declaration, so that all files that name the function agree.
std::string signature_refusal(const llvm::Function& function);

/// Returns the reason why this call cannot have the convention, or an empty string.
std::string call_refusal(const llvm::CallBase& call);

/// Returns the reason why the body of this function cannot have the convention, or an empty string.
std::string body_refusal(const llvm::Function& function);

/// Returns the reason why this function, whatever its convention, must not call one that preserves no register, or an
/// empty string.
std::string caller_refusal(const llvm::Function& function);

/// The refusals of functions whose convention the plugin may choose itself.
class function_refusals {
 public:
  explicit function_refusals(const llvm::Module& module);
  /// Returns the reason why this function cannot have the convention, or an empty string.
  std::string refusal(const llvm::Function& function);

 private:
  const std::string& refusal_as_caller(const llvm::Function& function);

  llvm::SmallPtrSet<llvm::GlobalValue*, 8> used_;  // by code that the compiler does not see
  llvm::DenseMap<const llvm::Function*, std::string> as_callers_;
};

/// Returns whether the module is built with a sanitizer of addresses, under which no function has the convention.
bool sanitizes_addresses(const llvm::Module& module);

}  // namespace pirn::plugin
