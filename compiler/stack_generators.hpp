// The stacks of generators of which only the plugin knows the size: generator<T, frame<>>. Such a generator asks for
// its stack by a call of `pirn_generator_frame_needs_the_compiler_plugin(entry, more, object)`. Here the call becomes
// the address of a variable of the function that makes the generator, which has room for the bound of `entry` and
// `more` bytes:
//
//      0: a word that is 0 when the function begins, for the generator to note that it has the stack
//      8: the number of bytes behind this header
//     16: the stack
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/OptimizationLevel.h"
#include "stack_facts.hpp"
#include "stack_frames.hpp"

namespace pirn::plugin {

/// The call of a generator for its stack.
struct generator_query {
  llvm::CallInst* call;
  llvm::Function* entry;  ///< null if it is not a constant
};
std::vector<generator_query> generator_queries_in(llvm::Module& module);

/// Gives all generators their stacks, those first that others hold in their bodies, and reports those that cannot have
/// one. `refine` amends the frames as for other bounds. Sets `error` if frames cannot be read.
void give_generator_frames(llvm::Module& module, llvm::OptimizationLevel level, const stack_facts& facts,
                           std::optional<std::uint64_t> otherwise, llvm::function_ref<void(stack_frames&)> refine,
                           std::string& error);

}  // namespace pirn::plugin
