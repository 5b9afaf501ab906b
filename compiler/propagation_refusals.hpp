// The functions that are refused the convention: by their signature, their body, a call or a caller.
#pragma once

#include <string>

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

namespace pirn::plugin {

/// Returns the reason why others than the calls in its file may call this function, or an empty string. `used` are
/// those marked as used by code that the compiler does not see.
std::string linkage_refusal(const llvm::Function& function, const llvm::SmallPtrSetImpl<llvm::GlobalValue*>& used);

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

/// Returns whether the module is built with a sanitizer of addresses, under which no function has the convention.
bool sanitizes_addresses(const llvm::Module& module);

}  // namespace pirn::plugin
