// Makes the messages of stack bounds.
#include "stack_messages.hpp"

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"

namespace pirn::plugin {

namespace {

using namespace llvm;

bool is_of_pirn(StringRef file) {
  return file.ends_with("pirn/fiber/expert/bounded.hpp") || file.ends_with("pirn/coro/generator.hpp");
}

/// Returns the place in the user's code: the call of the functions of pirn from which the call is inlined.
DiagnosticLocation place_of(const CallInst& call) {
  const DILocation* where = call.getDebugLoc().get();
  while (where != nullptr && where->getInlinedAt() != nullptr && is_of_pirn(where->getFilename())) {
    where = where->getInlinedAt();
  }
  return DebugLoc(where);
}

}  // namespace

void report_unbounded(const CallInst& call, const std::string& why) {
  const DiagnosticLocation where = place_of(call);
  call.getContext().diagnose(DiagnosticInfoUnsupported(*call.getFunction(), why, where));
}

void remark_bound(const CallInst& call, const Function& entry, const stack_bound& bound) {
  OptimizationRemark text("pirn-stack-bounds", "StackBound", place_of(call), call.getParent());
  text << "at most " << DiagnosticInfoOptimizationBase::Argument("Bytes", static_cast<unsigned long long>(*bound.bytes))
       << " bytes of stack for " << DiagnosticInfoOptimizationBase::Argument("Entry", shown(entry.getName().str()))
       << ", on the path " << DiagnosticInfoOptimizationBase::Argument("Path", shown(bound.path));
  call.getContext().diagnose(text);
}

}  // namespace pirn::plugin
