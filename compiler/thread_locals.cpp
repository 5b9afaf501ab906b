#include "passes.hpp"

namespace pirn::plugin {

void register_thread_locals(llvm::PassBuilder& /*builder*/) {}

}  // namespace pirn::plugin
