// What inline asm does to the stack.
#pragma once

#include <cstdint>
#include <optional>

#include "llvm/ADT/StringRef.h"

namespace pirn::plugin {

struct asm_kind {
  bool intel = false;    ///< written in Intel's syntax, the destination first
  bool sets_sp = false;  ///< by an operand or a clobber
};

/// How many bytes below the sp of its function inline asm uses; nothing where that cannot be told. It says so itself by
/// a comment `pirn-stack: BYTES`; else it uses none if it neither pushes, pops nor calls, and leaves the sp alone or
/// loads it right before it jumps, as a switch to another stack does.
std::optional<std::uint64_t> stack_of_asm(llvm::StringRef code, asm_kind kind);

}  // namespace pirn::plugin
