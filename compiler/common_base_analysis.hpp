// Addresses that the source requests separately, but that code generation computes from a value that it read from the
// thread before a suspension.
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "suspension.hpp"

namespace pirn::plugin {

/// Two addresses of thread-local variables with a call `between` that may suspend. Code generation may compute `later`
/// from a value that it read for `earlier`.
struct common_base {
  llvm::CallBase* earlier;
  llvm::CallBase* later;
  llvm::CallBase* between;
};

llvm::SmallVector<common_base, 4> find_common_bases(llvm::Function& function, const suspension& suspends);

}  // namespace pirn::plugin
