#include "passes.hpp"

namespace pirn::plugin {

void register_stack_bounds(llvm::PassBuilder& /*builder*/) {}

}  // namespace pirn::plugin
