// The use of the stack by inline asm.
#pragma once

#include <cstdint>
#include <optional>

#include "llvm/ADT/StringRef.h"

namespace pirn::plugin {

struct asm_kind {
  bool intel = false;    ///< written in Intel's syntax, the destination first
  bool sets_sp = false;  ///< the sp is an operand that it sets, or a clobber
};

/// Returns how many bytes below the sp of its function inline asm uses, or nothing if that is unknown. A comment
/// `pirn-stack: BYTES` in the asm gives the number. Otherwise it is 0 if the asm neither pushes, pops nor calls, and
/// leaves the sp alone or loads it right before a jump, as a switch to another stack does.
std::optional<std::uint64_t> stack_of_asm(llvm::StringRef code, asm_kind kind);

}  // namespace pirn::plugin
