// Recognizes switches by the registers that they clobber.
#include "switches.hpp"

#include <initializer_list>

#include "llvm/IR/InlineAsm.h"

namespace pirn::plugin {

bool is_switch(const llvm::CallBase& call) {
  const auto* const code = llvm::dyn_cast<llvm::InlineAsm>(call.getCalledOperand());
  if (code == nullptr) {
    return false;
  }
  // The asm itself saves the sp, the possible frame pointer, and x19, which may be a base pointer.
  const llvm::StringRef constraints = code->getConstraintString();
  const auto clobbers = [&](std::initializer_list<const char*> registers) {
    for (const char* each : registers) {
      if (!constraints.contains(each)) {
        return false;
      }
    }
    return true;
  };
  return clobbers({"{rbx}", "{r12}", "{r13}", "{r14}", "{r15}"}) || clobbers({"{x20}", "{x21}", "{x27}", "{x28}"});
}

}  // namespace pirn::plugin
