// Inserts and lowers barriers at the uses of thread-local variables.
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ReplaceConstant.h"
#include "suspension.hpp"
#include "thread_address.hpp"
#include "thread_locals.hpp"

namespace pirn::plugin {
namespace {

const llvm::MemoryEffects reads_thread = llvm::MemoryEffects::inaccessibleMemOnly(llvm::ModRefInfo::Ref);

/// Removes promises about the effects of `function` that do not hold if it depends on the thread.
bool weaken(llvm::Function& function) {
  bool changed = false;
  if ((function.getMemoryEffects() | reads_thread) != function.getMemoryEffects()) {
    function.setMemoryEffects(function.getMemoryEffects() | reads_thread);
    function.removeFnAttr(llvm::Attribute::Speculatable);
    changed = true;
  }
  for (llvm::User* user : function.users()) {
    auto* const call = llvm::dyn_cast<llvm::CallBase>(user);
    if (call == nullptr || call->getCalledOperand() != &function || !call->hasFnAttr(llvm::Attribute::Memory)) {
      continue;
    }
    const llvm::MemoryEffects said = call->getAttributes().getMemoryEffects();
    if ((said | reads_thread) != said) {
      call->setMemoryEffects(said | reads_thread);
      changed = true;
    }
  }
  return changed;
}

/// As `weaken`, for the given functions and all their direct and indirect callers.
void weaken_callers(llvm::SmallVector<llvm::Function*, 32> work) {
  llvm::SmallPtrSet<llvm::Function*, 32> seen(work.begin(), work.end());
  while (!work.empty()) {
    llvm::Function* const each = work.pop_back_val();
    weaken(*each);
    for (llvm::User* user : each->users()) {
      auto* const call = llvm::dyn_cast<llvm::CallBase>(user);
      if (call != nullptr && call->getCalledOperand() == each && seen.insert(call->getFunction()).second) {
        work.push_back(call->getFunction());
      }
    }
  }
}

/// Returns the place for an instruction that computes the operand before its use.
llvm::Instruction* before(llvm::Use& use) {
  auto* const user = llvm::cast<llvm::Instruction>(use.getUser());
  if (auto* const phi = llvm::dyn_cast<llvm::PHINode>(user)) {
    return phi->getIncomingBlock(use)->getTerminator();
  }
  return user;
}

bool insert_barrier(llvm::GlobalValue& variable, llvm::SmallVectorImpl<llvm::Function*>& thread_dependent) {
  const bool changed = llvm::convertUsersOfConstantsToInstructions({&variable});
  llvm::SmallVector<llvm::Use*, 16> uses;
  for (llvm::Use& each : variable.uses()) {
    if (const auto* const user = llvm::dyn_cast<llvm::Instruction>(each.getUser())) {
      if (!is_accessor(*user->getFunction())) {
        uses.push_back(&each);
      }
    }
  }
  if (uses.empty()) {
    return changed;
  }
  llvm::Function* const accessor =
      accessor_of(variable, *llvm::cast<llvm::Instruction>(uses.front()->getUser())->getFunction());
  thread_dependent.push_back(accessor);
  llvm::DenseMap<std::pair<llvm::PHINode*, llvm::BasicBlock*>, llvm::Value*> of_edges;
  for (llvm::Use* use : uses) {
    auto* const user = llvm::cast<llvm::Instruction>(use->getUser());
    auto* const intrinsic = llvm::dyn_cast<llvm::CallBase>(user);
    const bool is_intrinsic = intrinsic != nullptr && variable_of(*intrinsic) == &variable;
    // A phi has one value for all edges from a block.
    llvm::Value* fresh = nullptr;
    auto* const phi = llvm::dyn_cast<llvm::PHINode>(user);
    llvm::Value*& of_edge = of_edges[{phi, phi == nullptr ? nullptr : phi->getIncomingBlock(*use)}];
    if (phi != nullptr && of_edge != nullptr) {
      fresh = of_edge;
    } else {
      llvm::IRBuilder<> builder(before(*use));
      builder.SetCurrentDebugLocation(user->getDebugLoc());
      fresh = builder.CreateCall(accessor);
      of_edge = fresh;
    }
    if (is_intrinsic) {
      intrinsic->replaceAllUsesWith(fresh);
      intrinsic->eraseFromParent();
    } else {
      use->set(fresh);
    }
  }
  return true;
}

}  // namespace

llvm::PreservedAnalyses insert_barriers::run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses) {
  auto& functions = analyses.getResult<llvm::FunctionAnalysisManagerModuleProxy>(module).getManager();
  bool changed = false;
  llvm::SmallVector<llvm::Function*, 32> thread_dependent;
  for (llvm::Function& each : module) {
    llvm::LibFunc known;
    if (is_presumed_constant(each) && !functions.getResult<llvm::TargetLibraryAnalysis>(each).getLibFunc(each, known)) {
      thread_dependent.push_back(&each);
      changed = true;
    }
  }
  for (llvm::GlobalValue& each : module.global_values()) {
    if (each.isThreadLocal()) {
      changed |= insert_barrier(each, thread_dependent);
    }
  }
  weaken_callers(std::move(thread_dependent));
  return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
}

llvm::PreservedAnalyses lower_barriers::run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses) {
  llvm::SmallVector<llvm::Function*, 16> accessors;
  for (llvm::Function& each : module) {
    if (variable_of(each) != nullptr) {
      accessors.push_back(&each);
    }
  }
  if (accessors.empty()) {
    return llvm::PreservedAnalyses::all();
  }
  const suspension suspends(module, analyses, unknown_calls::assume_suspending);
  for (llvm::Function* accessor : accessors) {
    for (llvm::User* user : llvm::make_early_inc_range(accessor->users())) {
      auto* const call = llvm::dyn_cast<llvm::CallInst>(user);
      if (call != nullptr && call->getCalledOperand() == accessor && !suspends.may_suspend(*call->getFunction())) {
        llvm::IRBuilder<> builder(call);
        call->replaceAllUsesWith(builder.CreateThreadLocalAddress(variable_of(*accessor)));
        call->eraseFromParent();
      }
    }
    // Other modules of a ThinLTO link may call an accessor that is not discardable.
    if (accessor->use_empty() && accessor->isDiscardableIfUnused()) {
      accessor->eraseFromParent();
    }
  }
  return llvm::PreservedAnalyses::none();
}

}  // namespace pirn::plugin
