// Three questions are asked about every function that may switch. May it have the convention? Does a call of it usually
// switch? And do callers that keep their own convention gain? Such a caller saves all registers on entry, once, and the
// function then saves none at each call. The caller loses if it calls the function on a rare path only.
//
// Long chains of calls lose although they execute fewer instructions. The gain of a chain is the saves of the function
// at its end, and does not grow with the chain. The functions above it trade pushes for places in their frames, of
// which each lowers the stack pointer, while processors follow pushes without computing one. So where four or more
// functions pass one switch on and keep several values meanwhile, they keep their convention, down to the function at
// the end. One in the middle that preserved registers for those below it would pay for both.
#include "propagation_decision.hpp"

#include <algorithm>
#include <cstdio>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Analysis/BlockFrequencyInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "propagation_convention.hpp"
#include "propagation_refusals.hpp"
#include "switches.hpp"

namespace pirn::plugin {
namespace {

constexpr double usually = 0.5;     // switches in a call
constexpr unsigned long_chain = 4;  // functions above the one that switches
constexpr std::size_t several = 3;  // values kept over a call

struct call_of {
  std::size_t callee;  // an index into `candidates`
  double rate;
};

struct candidate {
  decision what;
  std::string refusal;
  double direct_rate = 0;       // calls that preserve no register, whatever the other decisions
  double called_by_others = 0;  // rate of calls by functions that preserve no register themselves
  std::vector<call_of> calls;
  std::size_t kept = 0;  // values over its calls that may switch, at most
  // Functions that pass the switch on and keep several values, from here to the switch; the fewest of all paths.
  unsigned below = 0;
  bool rejected = false;  // its callers would lose, or it would
};

std::string percent(double rate) {
  char text[32];
  std::snprintf(text, sizeof text, rate < 0.01 ? "%.2g %%" : "%.0f %%", 100 * rate);
  return text;
}

/// Returns an estimate of how many values live over the call: arguments, and what its block has computed before it,
/// with a use behind it or in another block.
std::size_t values_over(const llvm::CallBase& call) {
  const auto lives_over = [&](const llvm::Value& value) {
    return llvm::any_of(value.users(), [&](const llvm::User* user) {
      const auto* const use = llvm::dyn_cast<llvm::Instruction>(user);
      return use != nullptr && use != &call && (use->getParent() != call.getParent() || call.comesBefore(use));
    });
  };
  std::size_t found = 0;
  for (const llvm::Argument& argument : call.getFunction()->args()) {
    found += lives_over(argument) ? 1 : 0;
  }
  for (const llvm::Instruction& each : *call.getParent()) {
    if (&each == &call) {
      break;
    }
    found += !llvm::isa<llvm::AllocaInst>(each) && lives_over(each) ? 1 : 0;
  }
  return found;
}

bool is_convention(llvm::CallingConv::ID convention) { return convention == llvm::CallingConv::PreserveNone; }

bool preserves_nothing(const llvm::CallBase& call) { return is_convention(call.getCallingConv()) || is_switch(call); }

class cost_model {
 public:
  cost_model(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
  std::vector<decision> decide();

 private:
  std::size_t index_of(llvm::Function& function);
  void collect_rates(std::size_t index, llvm::FunctionAnalysisManager& analyses);
  void grow();
  bool reject_where_callers_lose();
  void measure_chains();
  bool reject_long_chains();
  double rate_of(const candidate& of) const;

  llvm::Module& module_;
  function_refusals refusals_;
  llvm::DenseMap<llvm::Function*, std::size_t> index_;
  std::vector<candidate> candidates_;
};

std::size_t cost_model::index_of(llvm::Function& function) {
  const auto [place, is_new] = index_.try_emplace(&function, candidates_.size());
  if (is_new) {
    candidates_.emplace_back();
    candidates_.back().what.function = &function;
    candidates_.back().refusal = refusals_.refusal(function);
  }
  return place->second;
}

cost_model::cost_model(llvm::Module& module, llvm::ModuleAnalysisManager& analyses)
    : module_(module), refusals_(module) {
  for (llvm::Function& function : module) {
    if (function.isDeclaration() || is_convention(function.getCallingConv())) {
      continue;
    }
    for (const llvm::Instruction& instruction : llvm::instructions(function)) {
      if (const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
          call != nullptr && preserves_nothing(*call)) {
        index_of(function);
        break;
      }
    }
  }
  auto& of_functions = analyses.getResult<llvm::FunctionAnalysisManagerModuleProxy>(module).getManager();
  for (std::size_t i = 0; i != candidates_.size(); ++i) {  // the loop adds candidates
    collect_rates(i, of_functions);
  }
}

void cost_model::collect_rates(std::size_t index, llvm::FunctionAnalysisManager& analyses) {
  llvm::Function& function = *candidates_[index].what.function;
  const llvm::BlockFrequencyInfo& frequencies = analyses.getResult<llvm::BlockFrequencyAnalysis>(function);
  const auto entry = static_cast<double>(frequencies.getEntryFreq().getFrequency());
  double direct_rate = 0;
  for (const llvm::Instruction& instruction : llvm::instructions(function)) {
    if (const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
        call != nullptr && preserves_nothing(*call)) {
      direct_rate += static_cast<double>(frequencies.getBlockFreq(call->getParent()).getFrequency()) / entry;
    }
  }
  candidates_[index].direct_rate = direct_rate;
  if (!candidates_[index].refusal.empty()) {
    return;  // its calls preserve registers
  }
  for (llvm::User* user : function.users()) {
    auto* const call = llvm::dyn_cast<llvm::CallBase>(user);
    if (call == nullptr || call->getCalledOperand() != &function) {
      continue;
    }
    llvm::Function& caller = *call->getFunction();
    const llvm::BlockFrequencyInfo& around = analyses.getResult<llvm::BlockFrequencyAnalysis>(caller);
    const double rate = static_cast<double>(around.getBlockFreq(call->getParent()).getFrequency()) /
                        static_cast<double>(around.getEntryFreq().getFrequency());
    if (is_convention(caller.getCallingConv())) {
      candidates_[index].called_by_others += rate;
    } else {
      const std::size_t which = index_of(caller);
      candidates_[which].calls.push_back({index, rate});
      candidates_[which].kept = std::max(candidates_[which].kept, values_over(*call));
    }
  }
}

double cost_model::rate_of(const candidate& of) const {
  double rate = of.direct_rate;
  for (const auto& [callee, often] : of.calls) {
    rate += candidates_[callee].what.propagated && candidates_[callee].what.function != of.what.function ? often : 0;
  }
  return rate;
}

// Finds the smallest set with every function that usually switches or calls a function of the set.
void cost_model::grow() {
  for (candidate& each : candidates_) {
    each.what.propagated = false;
  }
  for (bool grown = true; grown;) {
    grown = false;
    for (candidate& each : candidates_) {
      if (!each.what.propagated && !each.rejected && each.refusal.empty() && rate_of(each) >= usually) {
        each.what.propagated = grown = true;
      }
    }
  }
  for (candidate& each : candidates_) {
    each.what.switches = rate_of(each);
  }
}

// A function gains its own saves, at every call. It costs the saves of a caller that keeps its convention. Such a
// caller saves once in each call of it, for all such functions that it calls.
bool cost_model::reject_where_callers_lose() {
  struct benefit {
    double gain = 0;
    double loss = 0;
    const candidate* limiting_caller = nullptr;
  };
  std::vector<benefit> benefits(candidates_.size());
  for (const candidate& caller : candidates_) {
    if (caller.what.in_long_chain) {
      continue;  // it calls copies
    }
    const bool pays = !caller.what.propagated && caller.direct_rate == 0;
    for (const auto& [callee, often] : caller.calls) {
      benefit& of = benefits[callee];
      of.gain += often;
      if (pays && caller.what.switches > 0) {
        of.loss += often / caller.what.switches;
        of.limiting_caller = of.limiting_caller == nullptr || caller.what.switches < of.limiting_caller->what.switches
                                 ? &caller
                                 : of.limiting_caller;
      }
    }
  }
  bool rejected = false;
  for (std::size_t i = 0; i != candidates_.size(); ++i) {
    candidate& each = candidates_[i];
    if (each.what.propagated && each.called_by_others + benefits[i].gain < usually * benefits[i].loss) {
      each.rejected = rejected = true;
      each.what.reason = "'" + readable(*benefits[i].limiting_caller->what.function) +
                         "' would save all registers for it " + "and switches in " +
                         percent(benefits[i].limiting_caller->what.switches) + " of its calls";
    }
  }
  return rejected;
}

// Counts up to long_chain functions, so that a recursion comes to an end.
void cost_model::measure_chains() {
  const auto passes_on = [](const candidate& which) {
    return which.what.propagated && which.direct_rate == 0 && which.what.switches <= 1 && which.kept >= several;
  };
  for (candidate& each : candidates_) {
    each.below = 0;
  }
  for (unsigned turn = 0; turn != long_chain; ++turn) {
    std::vector<unsigned> found;
    for (const candidate& caller : candidates_) {
      unsigned fewest = caller.direct_rate > 0 ? 0 : long_chain;
      for (const auto& [callee, often] : caller.calls) {
        const candidate& called = candidates_[callee];
        fewest = called.what.propagated ? std::min(fewest, called.below + (passes_on(caller) ? 1 : 0)) : fewest;
      }
      found.push_back(fewest);
    }
    for (std::size_t i = 0; i != candidates_.size(); ++i) {
      candidates_[i].below = found[i];
    }
  }
}

// Rejects the functions above the limit, and of those below it the ones that nothing else calls.
bool cost_model::reject_long_chains() {
  measure_chains();
  bool rejected = false;
  const auto reject = [&](candidate& which) {
    which.rejected = which.what.in_long_chain = rejected = true;
    which.what.reason =
        "it is part of a long chain of functions that pass a switch on and keep several values meanwhile";
  };
  for (candidate& each : candidates_) {
    if (each.what.propagated && each.below >= long_chain && each.kept >= several) {
      reject(each);
    }
  }
  for (bool more = rejected; more;) {
    more = false;
    std::vector<bool> called_otherwise(candidates_.size());
    std::vector<bool> called(candidates_.size());
    for (const candidate& caller : candidates_) {
      for (const auto& [callee, often] : caller.calls) {
        (caller.what.in_long_chain ? called : called_otherwise)[callee] = true;
      }
    }
    for (std::size_t i = 0; i != candidates_.size(); ++i) {
      candidate& each = candidates_[i];
      if (each.what.propagated && !each.rejected && called[i] && !called_otherwise[i] && each.called_by_others == 0) {
        reject(each);
        more = true;
      }
    }
  }
  return rejected;
}

std::vector<decision> cost_model::decide() {
  do {
    grow();
  } while (reject_long_chains() || reject_where_callers_lose());
  std::vector<decision> decisions;
  for (llvm::Function& function : module_) {
    const auto found = index_.find(&function);
    if (found == index_.end()) {
      continue;
    }
    candidate& each = candidates_[found->second];
    if (!each.refusal.empty()) {
      each.what.reason = each.refusal;
    } else if (!each.what.propagated && !each.rejected) {
      each.what.reason = "it switches in " + percent(each.what.switches) + " of its calls";
    }
    decisions.push_back(each.what);
  }
  return decisions;
}

}  // namespace

std::vector<decision> decide(llvm::Module& module, llvm::ModuleAnalysisManager& analyses) {
  return cost_model(module, analyses).decide();
}

}  // namespace pirn::plugin
