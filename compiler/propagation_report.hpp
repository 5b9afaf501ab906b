// Reports decisions as remarks of the compiler, and into a file.
#pragma once

#include <string>
#include <vector>

#include "llvm/IR/Module.h"
#include "propagation_decision.hpp"

namespace pirn::plugin {

/// Emits a remark for each decision. -Rpass=pirn shows the functions that got the convention, -Rpass-missed=pirn the
/// others.
void emit_remarks(const std::vector<decision>& decisions);

/// Writes the decisions as JSON to `path`. If that does not end in .json, writes to a file in the folder `path` that is
/// named after the module. Failures are errors of the compilation.
void write_report(const llvm::Module& module, const std::vector<decision>& decisions, llvm::StringRef path);

}  // namespace pirn::plugin
