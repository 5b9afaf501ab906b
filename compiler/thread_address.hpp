// What in a program yields an address, or another value, that belongs to the thread which asks for it.
#pragma once

#include <optional>
#include <string>

#include "llvm/IR/GlobalVariable.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"

namespace pirn::plugin {

/// Whether the function is one that `accessor_of` made.
bool is_accessor(const llvm::Function& function);
/// The variable whose address the function returns, if it is one that `accessor_of` made and its body is here.
llvm::GlobalValue* variable_of(const llvm::Function& accessor);
/// The function that returns the address of a thread-local variable, of which optimizers know that what may write
/// memory, as a switch may, may change the result, and nothing else. `user` calls it.
llvm::Function* accessor_of(llvm::GlobalValue& variable, const llvm::Function& user);

/// What a call asks the thread for, as a programmer names it: a variable, `errno`, a function; nothing if its result
/// does not depend on the thread, or is a new one in each call because the compiler knows that it is.
std::optional<std::string> thread_value(const llvm::CallBase& call);
/// The thread-local variable that a call of the intrinsic is about, or null.
llvm::GlobalValue* variable_of(const llvm::CallBase& intrinsic);
/// Whether compilers are told that a call of this function, which is only declared, depends on nothing, though it may
/// depend on the thread.
bool is_presumed_constant(const llvm::Function& function);

}  // namespace pirn::plugin
