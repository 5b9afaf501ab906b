// What inline asm does to the stack.
#pragma once

#include <cstdint>
#include <optional>

#include "llvm/ADT/StringRef.h"

namespace pirn::plugin {

/// How many bytes below the sp of its function inline asm uses; nothing where that cannot be told. It says so itself by
/// a comment `pirn-stack: BYTES`; else it uses none if it neither pushes, pops nor calls, and leaves the sp alone or
/// loads it right before it jumps, as a switch to another stack does.
std::optional<std::uint64_t> stack_of_asm(llvm::StringRef code);

}  // namespace pirn::plugin
