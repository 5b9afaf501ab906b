// Finds pairs of thread-local addresses that code generation may compute from one base, although the fiber may suspend
// in between.
#include "common_base_analysis.hpp"

#include <set>

#include "llvm/IR/CFG.h"
#include "llvm/IR/Dominators.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/TargetParser/Triple.h"
#include "thread_address.hpp"

namespace pirn::plugin {
namespace {

/// The value from which an address is computed.
enum class base : std::uint8_t {
  thread,    // the thread pointer, which a block reads once (on x86-64)
  module,    // the module's part of the thread, which a function requests where one place dominates the others
  variable,  // a call for this variable, once in a block
};

base base_of(const llvm::GlobalValue& variable) {
  const llvm::Module& module = *variable.getParent();
  const bool shared_library =
      module.getPICLevel() != llvm::PICLevel::NotPIC && module.getPIELevel() == llvm::PIELevel::Default;
  switch (variable.getThreadLocalMode()) {
    case llvm::GlobalValue::InitialExecTLSModel:
    case llvm::GlobalValue::LocalExecTLSModel:
      return base::thread;
    default:
      break;
  }
  if (!shared_library) {
    return base::thread;
  }
  const bool local = variable.hasLocalLinkage() || variable.hasHiddenVisibility() || variable.isDSOLocal();
  return local ? base::module : base::variable;
}

/// Returns whether the processor adds the thread pointer itself at every read and write of the variable.
bool needs_no_address(const llvm::CallBase& address) {
  if (!llvm::Triple(address.getModule()->getTargetTriple()).isX86()) {
    return false;
  }
  for (const llvm::User* user : address.users()) {
    const auto* const at = llvm::cast<llvm::Instruction>(user);
    const bool read = llvm::isa<llvm::LoadInst>(at);
    const auto* const store = llvm::dyn_cast<llvm::StoreInst>(at);
    const bool written = store != nullptr && store->getValueOperand() != &address;
    if (at->getParent() != address.getParent() || !(read || written)) {
      return false;
    }
  }
  return true;
}

bool may_share_base(const llvm::CallBase& earlier, const llvm::CallBase& later, const llvm::DominatorTree& tree) {
  const llvm::GlobalValue& first = *variable_of(earlier);
  const llvm::GlobalValue& second = *variable_of(later);
  const bool in_block = earlier.getParent() == later.getParent() && earlier.comesBefore(&later);
  if (llvm::Triple(earlier.getModule()->getTargetTriple()).isAArch64()) {
    // The thread pointer is always added, and it is read where one place dominates the others.
    return in_block || tree.dominates(&earlier, &later);
  }
  const base from = base_of(second);
  if (base_of(first) != from) {
    return false;
  }
  switch (from) {
    case base::thread:
      return in_block && !needs_no_address(earlier) && !needs_no_address(later);
    case base::module:
      return in_block || tree.dominates(&earlier, &later);
    case base::variable:
      return in_block && &first == &second;
  }
  return false;
}

/// Returns a call that may suspend on a path from one to the other, or null.
llvm::CallBase* suspends_between(llvm::CallBase& from, llvm::CallBase& to, const suspension& suspends) {
  llvm::SmallVector<std::pair<llvm::BasicBlock::iterator, llvm::CallBase*>, 8> ways = {
      {std::next(from.getIterator()), nullptr}};
  std::set<std::pair<llvm::BasicBlock*, bool>> entered;
  while (!ways.empty()) {
    auto [at, found] = ways.pop_back_val();
    llvm::BasicBlock& block = *at->getParent();
    for (; at != block.end() && &*at != &to && &*at != &from; ++at) {
      auto* const call = llvm::dyn_cast<llvm::CallBase>(&*at);
      if (call != nullptr && suspends.may_suspend(*call)) {
        found = call;
      }
    }
    if (at == block.end()) {
      for (llvm::BasicBlock* next : llvm::successors(&block)) {
        if (entered.insert({next, found != nullptr}).second) {
          ways.push_back({next->begin(), found});
        }
      }
    } else if (&*at == &to && found != nullptr) {
      return found;
    }
  }
  return nullptr;
}

}  // namespace

llvm::SmallVector<common_base, 4> find_common_bases(llvm::Function& function, const suspension& suspends) {
  llvm::SmallVector<common_base, 4> shared;
  if (function.hasOptNone()) {
    return shared;  // without optimization each address is computed where it stands
  }
  llvm::SmallVector<llvm::CallBase*, 16> addresses;
  for (llvm::Instruction& each : llvm::instructions(function)) {
    auto* const call = llvm::dyn_cast<llvm::CallBase>(&each);
    if (call != nullptr && variable_of(*call) != nullptr) {
      addresses.push_back(call);
    }
  }
  if (addresses.size() < 2) {
    return shared;
  }
  const llvm::DominatorTree tree(function);
  for (llvm::CallBase* later : addresses) {
    for (llvm::CallBase* earlier : addresses) {
      if (earlier == later || !may_share_base(*earlier, *later, tree)) {
        continue;
      }
      if (llvm::CallBase* const between = suspends_between(*earlier, *later, suspends)) {
        shared.push_back({earlier, later, between});
        break;
      }
    }
  }
  return shared;
}

}  // namespace pirn::plugin
