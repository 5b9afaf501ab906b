// The convention itself: where it exists, which signatures it can carry, and how a function is given it.
#pragma once

#include <string>

#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

namespace pirn::plugin {

/// The name of a function as a person writes it.
std::string readable(const llvm::GlobalValue& function);

/// Whether code for this module's target can be generated with a convention that preserves no register.
bool has_convention(const llvm::Module& module);

/// Why a function with this signature cannot have the convention, or an empty string. The answer depends on what each
/// declaration shows, so that all files which name the function agree.
std::string signature_refusal(const llvm::Function& function);

/// Why this call cannot be one with the convention, or an empty string.
std::string call_refusal(const llvm::CallBase& call);

/// Why what is in the body of this function forbids it to have the convention, or an empty string.
std::string body_refusal(const llvm::Function& function);

/// Why this function, whatever its own convention, must not call one that preserves no register, or an empty string.
std::string caller_refusal(const llvm::Function& function);

/// Whether the module is built with a sanitizer of addresses, under which nothing has the convention.
bool sanitizes_addresses(const llvm::Module& module);

/// Gives the convention to a function and to every direct call of it.
void set_convention(llvm::Function& function);

}  // namespace pirn::plugin
