// Gives functions the convention, on targets that have it.
#include "propagation_convention.hpp"

#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/CallingConv.h"
#include "llvm/IR/Instructions.h"
#include "llvm/TargetParser/Triple.h"

namespace pirn::plugin {

std::string readable(const llvm::GlobalValue& function) { return llvm::demangle(function.getName().str()); }

bool has_convention(const llvm::Module& module) {
  const llvm::Triple target(module.getTargetTriple());
  return target.isOSBinFormatELF() &&
         ((target.getArch() == llvm::Triple::x86_64 && !target.isX32()) ||
          (target.getArch() == llvm::Triple::aarch64 && target.getEnvironment() != llvm::Triple::GNUILP32));
}

void set_convention(llvm::Function& function) {
  function.setCallingConv(llvm::CallingConv::PreserveNone);
  for (llvm::User* user : function.users()) {
    if (auto* const call = llvm::dyn_cast<llvm::CallBase>(user);
        call != nullptr && call->getCalledOperand() == &function) {
      call->setCallingConv(llvm::CallingConv::PreserveNone);
    }
  }
}

}  // namespace pirn::plugin
