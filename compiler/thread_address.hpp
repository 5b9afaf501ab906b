// Finds the calls that return an address, or another value, that belongs to the calling thread.
#pragma once

#include <optional>
#include <string>

#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

namespace pirn::plugin {

/// Returns whether the function was made by `accessor_of`.
bool is_accessor(const llvm::Function& function);
/// Returns the variable whose address the function returns, if `accessor_of` made it and its body is here.
llvm::GlobalValue* variable_of(const llvm::Function& accessor);
/// Returns a function that returns the address of a thread-local variable. Optimizers know that any code that may write
/// memory, as a switch may, can change the result, and that nothing else can. `user` calls it.
llvm::Function* accessor_of(llvm::GlobalValue& variable, const llvm::Function& user);

/// Returns what a call requests from the thread, as named in the source: a variable, `errno`, a function. Returns
/// nothing if the result does not depend on the thread, or if the compiler knows that it is a new one in each call.
std::optional<std::string> thread_value(const llvm::CallBase& call);
/// Returns the thread-local variable whose address a call of the intrinsic requests, or null.
llvm::GlobalValue* variable_of(const llvm::CallBase& intrinsic);
/// Returns whether this function is only declared, and declared to depend on nothing, although it may depend on the
/// thread.
bool is_presumed_constant(const llvm::Function& function);

}  // namespace pirn::plugin
