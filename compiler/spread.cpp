#include "passes.hpp"

namespace pirn::plugin {

void register_spread(llvm::PassBuilder& /*builder*/) {}

}  // namespace pirn::plugin
