// Gives this file private copies of inline functions whose stack is measured.
#include "stack_copies.hpp"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/ValueMapper.h"

namespace pirn::plugin {

namespace {

using namespace llvm;

bool is_one_of_several(const Function& function) {
  return !function.isDeclaration() && (function.hasLinkOnceODRLinkage() || function.hasWeakODRLinkage());
}

/// Returns whether the function can be copied. A table of labels, which is not part of a function, would lead from the
/// copy into the original.
bool can_be_copied(const Function& function) {
  return none_of(function, [](const BasicBlock& block) { return block.hasAddressTaken(); });
}

}  // namespace

bool keep_to_own_copies(std::vector<Function*>& roots, function_ref<bool(const Function&)> needs_none) {
  DenseMap<Function*, Function*> own;
  const auto own_of = [&](Function* function) {
    if (!is_one_of_several(*function) || !can_be_copied(*function)) {
      return function;
    }
    Function*& copy = own[function];
    if (copy == nullptr) {
      ValueToValueMapTy map;
      copy = CloneFunction(function, map);
      copy->setName(function->getName() + ".own");
      copy->setLinkage(GlobalValue::InternalLinkage);
      copy->setVisibility(GlobalValue::DefaultVisibility);
      copy->setComdat(nullptr);
      copy->setDSOLocal(true);
    }
    return copy;
  };
  SetVector<Function*> reached;
  for (Function*& root : roots) {
    if (Function* const copy = own_of(root); copy != root) {
      root->replaceAllUsesWith(copy);
      root = copy;
    }
    reached.insert(root);
  }
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (reached[i]->isDeclaration()) {
      continue;
    }
    for (Instruction& each : instructions(*reached[i])) {
      auto* const call = dyn_cast<CallBase>(&each);
      auto* const callee = call != nullptr ? dyn_cast<Function>(call->getCalledOperand()) : nullptr;
      if (callee == nullptr || callee->isIntrinsic() || needs_none(*callee)) {
        continue;
      }
      Function* const copy = own_of(callee);
      call->setCalledOperand(copy);
      reached.insert(copy);
    }
  }
  return !own.empty();
}

}  // namespace pirn::plugin
