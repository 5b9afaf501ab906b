// Functions that switch preserve no register for their callers (preserve_none). This gives the same convention to their
// callers, and to the callers of those. They need not save registers in which their own callers keep nothing either.
#include <map>
#include <memory>
#include <vector>

#include "bitcode.hpp"
#include "llvm/ADT/DenseSet.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/InstrTypes.h"
#include "llvm/IR/Module.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/ValueMapper.h"
#include "passes.hpp"
#include "propagation_convention.hpp"
#include "propagation_decision.hpp"
#include "propagation_list.hpp"
#include "propagation_refusals.hpp"
#include "propagation_report.hpp"
#include "propagation_settings.hpp"

namespace pirn::plugin {
namespace {

// Directs the calls in long chains to copies of the called functions that preserve registers. The originals have other
// callers, which gain.
class preserving_copies {
 public:
  explicit preserving_copies(const std::vector<decision>& decisions) {
    for (const decision& each : decisions) {
      if (each.propagated) {
        propagated_.insert(each.function);
      }
    }
  }
  void redirect_calls_in(llvm::Function& function) {
    for (llvm::Instruction& each : llvm::instructions(function)) {
      if (auto* const call = llvm::dyn_cast<llvm::CallBase>(&each);
          call != nullptr && propagated_.contains(call->getCalledFunction())) {
        call->setCalledFunction(copy_of(*call->getCalledFunction()));
      }
    }
  }

 private:
  llvm::Function* copy_of(llvm::Function& function) {
    llvm::Function*& known = copies_[&function];
    if (known == nullptr) {
      llvm::ValueToValueMapTy map;
      llvm::Function* const copy = known = llvm::CloneFunction(&function, map);
      copy->setName(function.getName() + ".preserving");
      redirect_calls_in(*copy);
      return copy;
    }
    return known;
  }

  llvm::DenseSet<llvm::Function*> propagated_;
  std::map<llvm::Function*, llvm::Function*> copies_;
};

void preserve_in_long_chains(const std::vector<decision>& decisions) {
  preserving_copies copies(decisions);
  for (const decision& each : decisions) {
    if (each.in_long_chain) {
      copies.redirect_calls_in(*each.function);
    }
  }
}

// Runs after all other passes, when inlining is finished.
class propagation_pass : public llvm::PassInfoMixin<propagation_pass> {
 public:
  /// With `unless_linked`, does nothing if the module will be optimized again, by a linker.
  explicit propagation_pass(bool unless_linked = false) : unless_linked_(unless_linked) {}

  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses) const {
    const propagation_settings settings = settings_of(module);
    if (!has_convention(module) || (unless_linked_ && is_for_linker(module))) {
      return llvm::PreservedAnalyses::all();
    }
    check_listed_calls(module);
    if (!settings.automatic) {
      return llvm::PreservedAnalyses::all();
    }
    const std::vector<decision> decisions = decide(module, analyses);
    bool changed = false;
    emit_remarks(decisions);
    preserve_in_long_chains(decisions);
    for (const decision& each : decisions) {
      if (each.propagated) {
        set_convention(*each.function);
        changed = true;
      }
    }
    if (!settings.report.empty()) {
      write_report(module, decisions, settings.report);
    }
    return changed ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
  }

 private:
  bool unless_linked_;
};

// Runs before all other passes, so that the agreement between files does not depend on inlining.
struct list_pass : llvm::PassInfoMixin<list_pass> {
  static llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& /*analyses*/) {
    const propagation_settings settings = settings_of_command();
    remember(module, settings);
    if (settings.list.empty() || !has_convention(module) || sanitizes_addresses(module)) {
      return llvm::PreservedAnalyses::all();
    }
    llvm::Expected<name_list> list = name_list::read(settings.list);
    if (!list) {
      module.getContext().emitError(llvm::toString(list.takeError()));
      return llvm::PreservedAnalyses::all();
    }
    return apply_list(module, *list) ? llvm::PreservedAnalyses::none() : llvm::PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }
};

}  // namespace

void register_propagation(llvm::PassBuilder& builder) {
  builder.registerPipelineParsingCallback([](llvm::StringRef name, llvm::ModulePassManager& passes,
                                             llvm::ArrayRef<llvm::PassBuilder::PipelineElement> /*inner*/) {
    if (name == "pirn-propagate") {
      passes.addPass(propagation_pass());
      return true;
    }
    if (name == "pirn-list") {
      passes.addPass(list_pass());
      return true;
    }
    return false;
  });
  builder.registerPipelineStartEPCallback(
      [](llvm::ModulePassManager& passes, llvm::OptimizationLevel /*level*/) { passes.addPass(list_pass()); });
#if LLVM_VERSION_MAJOR >= 20
  builder.registerOptimizerLastEPCallback(
      [](llvm::ModulePassManager& passes, llvm::OptimizationLevel level, llvm::ThinOrFullLTOPhase phase) {
        const bool last = phase == llvm::ThinOrFullLTOPhase::None || phase == llvm::ThinOrFullLTOPhase::ThinLTOPostLink;
        if (last && level != llvm::OptimizationLevel::O0) {
          passes.addPass(propagation_pass());
        }
      });
#else
  // LLVM does not report the phase. Only a compiler starts a pipeline from the beginning.
  const auto compiles = std::make_shared<bool>(false);
  builder.registerPipelineStartEPCallback(
      [compiles](llvm::ModulePassManager& /*passes*/, llvm::OptimizationLevel /*level*/) { *compiles = true; });
  builder.registerOptimizerLastEPCallback([compiles](llvm::ModulePassManager& passes, llvm::OptimizationLevel level) {
    if (level != llvm::OptimizationLevel::O0) {
      passes.addPass(propagation_pass(*compiles));
    }
  });
#endif
  builder.registerFullLinkTimeOptimizationLastEPCallback(
      [](llvm::ModulePassManager& passes, llvm::OptimizationLevel level) {
        if (level != llvm::OptimizationLevel::O0) {
          passes.addPass(propagation_pass());
        }
      });
}

}  // namespace pirn::plugin
