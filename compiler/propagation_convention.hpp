// The convention itself: the targets that have it, the signatures that it can carry, and how a function gets it.
#pragma once

#include <string>

#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

namespace pirn::plugin {

/// Returns the name of a function as in the source.
std::string readable(const llvm::GlobalValue& function);

/// Returns whether code for this module's target can be generated with a convention that preserves no register.
bool has_convention(const llvm::Module& module);

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

/// Gives the convention to a function and to every direct call of it.
void set_convention(llvm::Function& function);

}  // namespace pirn::plugin
