// Registers the passes about thread-local variables, and keeps their mode with the module.
#include "thread_locals.hpp"

#include <memory>

#include "llvm/IR/Constants.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/CommandLine.h"
#include "passes.hpp"

namespace pirn::plugin {
namespace {

/// `warn` reports stale addresses in the final code; `safe` prevents those that optimizers cause and reports the rest.
enum class thread_locals_mode : std::uint8_t { off, warn, safe };

constexpr const char* flag = "pirn thread locals";

llvm::cl::opt<thread_locals_mode> mode(
    "pirn-thread-locals", llvm::cl::desc("Addresses of thread-local variables in code that migratable fibers run"),
    llvm::cl::values(clEnumValN(thread_locals_mode::off, "off", "not checked"),
                     clEnumValN(thread_locals_mode::warn, "warn", "warn about those that are used after a suspension"),
                     clEnumValN(thread_locals_mode::safe, "safe", "compute them again after each suspension")),
    llvm::cl::init(thread_locals_mode::off));

llvm::cl::opt<unknown_calls> calls(
    "pirn-thread-locals-calls", llvm::cl::desc("Assumption of the warnings about functions whose code is not visible"),
    llvm::cl::values(clEnumValN(unknown_calls::assume_nonsuspending, "known",
                                "they do not suspend, unless they are pirn's or annotated"),
                     clEnumValN(unknown_calls::assume_suspending, "all",
                                "they may suspend, unless they are of a system library")),
    llvm::cl::init(unknown_calls::assume_nonsuspending));

/// Returns the highest mode of all parts of a module. It stays with the module up to the linker, which has no such
/// option.
thread_locals_mode remembered(const llvm::Module& module) {
  const auto* const value = llvm::mdconst::extract_or_null<llvm::ConstantInt>(module.getModuleFlag(flag));
  return value == nullptr ? thread_locals_mode::off : static_cast<thread_locals_mode>(value->getZExtValue());
}

/// Runs a pass if the module is in one of the modes from `min_mode` on.
template <class Pass>
class in_mode : public llvm::PassInfoMixin<in_mode<Pass>> {
 public:
  explicit in_mode(thread_locals_mode min_mode) : min_mode_(min_mode) {}
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses) {
    return remembered(module) < min_mode_ ? llvm::PreservedAnalyses::all() : Pass().run(module, analyses);
  }
  static bool isRequired() { return true; }

 private:
  thread_locals_mode min_mode_;
};

class remember_mode : public llvm::PassInfoMixin<remember_mode> {
 public:
  static llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& /*analyses*/) {
    if (mode != thread_locals_mode::off && module.getModuleFlag(flag) == nullptr) {
      module.addModuleFlag(llvm::Module::Max, flag, static_cast<std::uint32_t>(mode.getValue()));
    }
    return llvm::PreservedAnalyses::all();
  }
  static bool isRequired() { return true; }
};

/// Returns whether the module will be linked as bitcode, and optimized again.
bool is_for_link(const llvm::Module& module) { return module.getModuleFlag("EnableSplitLTOUnit") != nullptr; }

class lower_barriers_at_end : public llvm::PassInfoMixin<lower_barriers_at_end> {
 public:
  explicit lower_barriers_at_end(bool compiled_here) : compiled_here_(compiled_here) {}
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses) {
    const bool more_is_inlined = compiled_here_ && is_for_link(module);
    return more_is_inlined || remembered(module) != thread_locals_mode::safe ? llvm::PreservedAnalyses::all()
                                                                             : lower_barriers::run(module, analyses);
  }
  static bool isRequired() { return true; }

 private:
  bool compiled_here_;
};

void add_last(llvm::ModulePassManager& passes, bool compiled_here) {
  passes.addPass(lower_barriers_at_end(compiled_here));
  passes.addPass(in_mode<report_stale_addresses>(thread_locals_mode::warn));
}

}  // namespace

unknown_calls presumed_of_unknown_calls() { return calls; }

void register_thread_locals(llvm::PassBuilder& builder) {
  // A compiler begins at the start. The second half of ThinLTO does not, and ends in the same way.
  const auto compiled_here = std::make_shared<bool>(false);
  builder.registerPipelineStartEPCallback(
      [compiled_here](llvm::ModulePassManager& passes, llvm::OptimizationLevel /*level*/) {
        *compiled_here = true;
        passes.addPass(remember_mode());
        passes.addPass(in_mode<insert_barriers>(thread_locals_mode::safe));
      });
  builder.registerOptimizerLastEPCallback([compiled_here](llvm::ModulePassManager& passes,
                                                          llvm::OptimizationLevel /*level*/,
                                                          auto... /*phase*/) { add_last(passes, *compiled_here); });
  builder.registerFullLinkTimeOptimizationEarlyEPCallback(
      [](llvm::ModulePassManager& passes, llvm::OptimizationLevel /*level*/) {
        passes.addPass(in_mode<insert_barriers>(thread_locals_mode::safe));
      });
  builder.registerFullLinkTimeOptimizationLastEPCallback(
      [](llvm::ModulePassManager& passes, llvm::OptimizationLevel /*level*/) { add_last(passes, false); });
  builder.registerPipelineParsingCallback([](llvm::StringRef name, llvm::ModulePassManager& passes,
                                             llvm::ArrayRef<llvm::PassBuilder::PipelineElement> /*inner*/) {
    if (name == "pirn-insert-thread-local-barriers") {
      passes.addPass(insert_barriers());
    } else if (name == "pirn-lower-thread-local-barriers") {
      passes.addPass(lower_barriers());
    } else if (name == "pirn-report-thread-locals") {
      passes.addPass(report_stale_addresses());
    } else {
      return false;
    }
    return true;
  });
}

}  // namespace pirn::plugin
