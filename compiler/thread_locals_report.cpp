// Warns of thread-local addresses that are used after a suspension.
#include <set>
#include <tuple>

#include "common_base_analysis.hpp"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "stale_uses.hpp"
#include "suspension.hpp"
#include "thread_address.hpp"
#include "thread_locals.hpp"

namespace pirn::plugin {
namespace {

/// Returns the place of `at` as a reader of the code at `use` sees it: in the innermost function from which both come.
/// That function may be inlined into another one, as the body of a fiber is.
const llvm::DILocation* seen_from(const llvm::DILocation* use, const llvm::DILocation* at) {
  for (const llvm::DILocation* from = use; from != nullptr; from = from->getInlinedAt()) {
    for (const llvm::DILocation* place = at; place != nullptr; place = place->getInlinedAt()) {
      if (place->getInlinedAt() == from->getInlinedAt() &&
          place->getScope()->getSubprogram() == from->getScope()->getSubprogram()) {
        return place;
      }
    }
  }
  while (at != nullptr && at->getInlinedAt() != nullptr) {
    at = at->getInlinedAt();
  }
  return at;
}

std::string in_line(const llvm::DILocation* use, const llvm::DILocation* place) {
  if (place == nullptr || place->getLine() == 0) {
    return "";
  }
  const std::string line = " in line " + std::to_string(place->getLine());
  return use == nullptr || use->getFilename() == place->getFilename() ? line
                                                                      : line + " of " + place->getFilename().str();
}

/// Names the function that suspends as the source shows it: the function that the code calls, inlined or not.
std::string suspending_call(const llvm::CallBase& call, const llvm::DILocation* use) {
  const llvm::DILocation* const seen = seen_from(use, call.getDebugLoc().get());
  std::string name;
  for (const llvm::DILocation* place = call.getDebugLoc().get(); place != seen; place = place->getInlinedAt()) {
    const llvm::DISubprogram* const inlined = place->getScope()->getSubprogram();
    name = readable_name(inlined->getLinkageName().empty() ? inlined->getName() : inlined->getLinkageName());
  }
  if (name.empty()) {
    const llvm::Function* const callee = named_callee(call);
    if (callee == nullptr) {
      return (call.isInlineAsm() ? "the switch" : "the call through a pointer") + in_line(use, seen);
    }
    name = readable_name(callee->getName());
  }
  return "'" + name + "'" + in_line(use, seen);
}

class reporter {
 public:
  explicit reporter(const llvm::Function& function) : function_(function) {}

  /// Warns that `used` relies on `taken`, the address of `what`. If that is computed from the address of another
  /// variable, `other` is its name.
  void report(const llvm::Instruction& used, const llvm::Instruction& taken, const llvm::CallBase& between,
              const std::string& what, const std::string& other) {
    const llvm::DebugLoc& place = used.getDebugLoc();
    const std::string origin = in_line(place.get(), seen_from(place.get(), taken.getDebugLoc().get()));
    const bool is_result = llvm::StringRef(what).ends_with("()");
    std::string fact = is_result ? "'" + what + "': its result" : "thread-local '" + what + "': its address";
    if (!other.empty()) {
      fact += ", computed from that of '" + other + "'";
    }
    fact += ", taken" + (origin.empty() ? " earlier" : origin) + ", is ";
    const std::string call = suspending_call(between, place.get());
    fact += &used == &between
                ? "passed to " + call + ", which uses it after it may have moved the fiber to another thread"
                : "used here after " + call + " may have moved the fiber to another thread";
    if (!said_
             .insert({place ? place->getFilename().str() : "", place ? place.getLine() : 0, place ? place.getCol() : 0,
                      fact})
             .second) {
      return;
    }
    llvm::DiagnosticInfoOptimizationFailure warning("pirn-thread-locals", "StaleAddress",
                                                    llvm::DiagnosticLocation(place), used.getParent());
    warning << fact;
    if (!place) {
      warning << " (in '" + readable_name(function_.getName()) + "', compiled without line numbers)";
    }
    function_.getContext().diagnose(warning);
  }

 private:
  const llvm::Function& function_;
  std::set<std::tuple<std::string, unsigned, unsigned, std::string>> said_;
};

}  // namespace

llvm::PreservedAnalyses report_stale_addresses::run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses) {
  const suspension suspends(module, analyses, presumed_of_unknown_calls());
  for (llvm::Function& each : module) {
    if (each.isDeclaration() || each.hasAvailableExternallyLinkage() || !suspends.may_suspend(each)) {
      continue;
    }
    reporter reporter(each);
    for (llvm::Instruction& instruction : llvm::instructions(each)) {
      auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      const std::optional<std::string> what = call == nullptr ? std::nullopt : thread_value(*call);
      if (!what) {
        continue;
      }
      for (const auto& [used, between] : find_stale_uses(*call, suspends)) {
        reporter.report(*used, *call, *between, *what, "");
      }
    }
    for (const common_base& shared : find_common_bases(each, suspends)) {
      const std::string what = *thread_value(*shared.later);
      const std::string other = *thread_value(*shared.earlier);
      reporter.report(*shared.later, *shared.earlier, *shared.between, what, what == other ? "" : other);
    }
  }
  return llvm::PreservedAnalyses::all();
}

}  // namespace pirn::plugin
