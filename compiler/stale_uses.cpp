// Follows a value along all paths of a function, to its uses behind a suspension.
#include "stale_uses.hpp"

#include <set>
#include <utility>

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/CFG.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IntrinsicInst.h"

namespace pirn::plugin {
namespace {

/// Returns whether the result is the operand, or an address at an offset from it.
bool passes_on(const llvm::Instruction& user, const llvm::Value& operand) {
  if (const auto* const choice = llvm::dyn_cast<llvm::SelectInst>(&user)) {
    return choice->getCondition() != &operand;
  }
  if (const auto* const address = llvm::dyn_cast<llvm::GetElementPtrInst>(&user)) {
    return address->getPointerOperand() == &operand;
  }
  if (const auto* const call = llvm::dyn_cast<llvm::CallBase>(&user)) {
    return call->getIntrinsicID() != llvm::Intrinsic::not_intrinsic &&
           llvm::getArgumentAliasingToReturnedPointer(call, /*MustPreserveNullness=*/false) == &operand;
  }
  // The value as an integer. Neither the difference of two addresses nor the low bits of one are an address.
  if (user.getOpcode() == llvm::Instruction::Add || user.getOpcode() == llvm::Instruction::Or) {
    return true;
  }
  if (user.getOpcode() == llvm::Instruction::And) {
    const auto* const mask = llvm::dyn_cast<llvm::ConstantInt>(user.getOperand(1));
    return mask != nullptr && mask->isNegative();
  }
  return llvm::isa<llvm::CastInst, llvm::FreezeInst, llvm::PHINode>(user);
}

/// Returns whether an instruction is only a note for optimizers and debuggers.
bool is_note(const llvm::Instruction& user) {
  return user.isLifetimeStartOrEnd() || llvm::isa<llvm::DbgInfoIntrinsic, llvm::AssumeInst>(user);
}

/// Returns the local variable at the pointer, if all values in it are stored by its name; else null.
llvm::AllocaInst* variable_at(llvm::Value* pointer) {
  auto* const variable = llvm::dyn_cast<llvm::AllocaInst>(pointer);
  if (variable == nullptr) {
    return nullptr;
  }
  for (const llvm::User* user : variable->users()) {
    const auto* const store = llvm::dyn_cast<llvm::StoreInst>(user);
    const bool stored_into = store != nullptr && store->getPointerOperand() == variable;
    if (!stored_into && !llvm::isa<llvm::LoadInst>(user) && !is_note(*llvm::cast<llvm::Instruction>(user))) {
      return nullptr;
    }
  }
  return variable;
}

class finder {
 public:
  explicit finder(const suspension& suspends) : suspends_(suspends) {}

  stale_uses run(llvm::Value& value) {
    reached(value, nullptr);
    while (!work_.empty()) {
      const auto [place, since] = work_.pop_back_val();
      follow(*place, since);
    }
    return std::move(found_);
  }

 private:
  /// Notes that `place` holds the value: an argument, an instruction with that result, or a store that puts it into a
  /// local variable. The value is stale since `since`, or fresh.
  void reached(llvm::Value& place, llvm::CallBase* since) {
    if (seen_.insert({&place, since != nullptr}).second) {
      work_.push_back({&place, since});
    }
  }

  /// Follows all paths from the point where `place` holds the value to the point where it is computed again.
  void follow(llvm::Value& place, llvm::CallBase* since) {
    auto* const store = llvm::dyn_cast<llvm::StoreInst>(&place);
    llvm::AllocaInst* const variable =
        store == nullptr ? nullptr : llvm::cast<llvm::AllocaInst>(store->getPointerOperand());
    auto* const first = llvm::dyn_cast<llvm::Instruction>(&place);
    llvm::SmallVector<std::pair<llvm::BasicBlock::iterator, llvm::CallBase*>, 8> ways;
    if (first == nullptr) {
      ways.push_back({llvm::cast<llvm::Argument>(place).getParent()->getEntryBlock().begin(), since});
    } else if (first->isTerminator()) {
      for (llvm::BasicBlock* next : llvm::successors(first)) {
        into_phis(*first->getParent(), *next, place, variable, since);
        ways.push_back({next->begin(), since});
      }
    } else {
      ways.push_back({std::next(first->getIterator()), since});
    }
    std::set<std::pair<llvm::BasicBlock*, bool>> entered;
    while (!ways.empty()) {
      auto [at, stale] = ways.pop_back_val();
      llvm::BasicBlock& block = *at->getParent();
      bool ended = false;
      for (; at != block.end() && !ended; ++at) {
        ended = &*at == first || step(*at, place, variable, stale);
      }
      if (ended) {
        continue;
      }
      for (llvm::BasicBlock* next : llvm::successors(&block)) {
        into_phis(block, *next, place, variable, stale);
        if (entered.insert({next, stale != nullptr}).second) {
          ways.push_back({next->begin(), stale});
        }
      }
    }
  }

  /// Passes the value from one block into the phis of the next.
  void into_phis(llvm::BasicBlock& from, llvm::BasicBlock& to, llvm::Value& place, const llvm::AllocaInst* variable,
                 llvm::CallBase* stale) {
    for (llvm::PHINode& phi : to.phis()) {
      if (variable == nullptr && phi.getIncomingValueForBlock(&from) == &place) {
        reached(phi, stale);
      }
    }
  }

  /// Visits one instruction; returns whether the path ends there because the local variable gets another value.
  bool step(llvm::Instruction& at, llvm::Value& place, llvm::AllocaInst* variable, llvm::CallBase*& stale) {
    if (variable != nullptr) {
      if (auto* const load = llvm::dyn_cast<llvm::LoadInst>(&at);
          load != nullptr && load->getPointerOperand() == variable) {
        reached(*load, stale);
      }
      if (auto* const store = llvm::dyn_cast<llvm::StoreInst>(&at)) {
        if (store->getPointerOperand() == variable) {
          return true;
        }
      }
    } else if (!llvm::isa<llvm::PHINode>(at) && llvm::is_contained(at.operands(), &place)) {
      used(at, place, stale);
    }
    auto* const call = llvm::dyn_cast<llvm::CallBase>(&at);
    if (call != nullptr && suspends_.may_suspend(*call)) {
      stale = call;
    }
    return false;
  }

  void used(llvm::Instruction& at, llvm::Value& place, llvm::CallBase* stale) {
    if (passes_on(at, place)) {
      reached(at, stale);
      return;
    }
    if (auto* const store = llvm::dyn_cast<llvm::StoreInst>(&at)) {
      if (store->getValueOperand() == &place && variable_at(store->getPointerOperand()) != nullptr) {
        reached(*store, stale);
        return;
      }
    }
    if (is_note(at)) {
      return;
    }
    auto* const call = llvm::dyn_cast<llvm::CallBase>(&at);
    if (call != nullptr && call->getReturnedArgOperand() == &place) {
      reached(at, stale);
    }
    if (stale != nullptr) {
      found_.insert({&at, stale});
    } else if (call != nullptr && suspends_.may_suspend(*call) && callee_keeps(*call, place)) {
      found_.insert({&at, call});
    }
  }

  bool callee_keeps(const llvm::CallBase& call, const llvm::Value& place) {
    llvm::Function* const callee = named_callee(call);
    if (callee == nullptr) {
      return false;  // most calls through pointers suspend nothing
    }
    for (unsigned i = 0; i < call.arg_size(); ++i) {
      if (call.getArgOperand(i) != &place) {
        continue;
      }
      if (callee->isDeclaration() || i >= callee->arg_size()) {
        return true;
      }
      // A second pass around a recursion finds nothing new.
      if (asked_.insert(callee->getArg(i)).second) {
        finder inside(suspends_);
        inside.asked_ = asked_;
        if (!inside.run(*callee->getArg(i)).empty()) {
          return true;
        }
        asked_.insert(inside.asked_.begin(), inside.asked_.end());
      }
    }
    return false;
  }

  const suspension& suspends_;
  stale_uses found_;
  std::set<std::pair<llvm::Value*, bool>> seen_;
  llvm::DenseSet<llvm::Argument*> asked_;
  llvm::SmallVector<std::pair<llvm::Value*, llvm::CallBase*>, 16> work_;
};

}  // namespace

stale_uses find_stale_uses(llvm::Value& value, const suspension& suspends) { return finder(suspends).run(value); }

}  // namespace pirn::plugin
