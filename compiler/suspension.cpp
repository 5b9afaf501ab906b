// Concludes from annotations, names and calls which functions may suspend.
#include "suspension.hpp"

#include <cstdlib>

#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/GlobalAlias.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "switches.hpp"
#include "thread_address.hpp"

namespace pirn::plugin {
namespace {

/// Returns the functions with the annotation "pirn::suspends". Compilers keep annotations in this form only.
llvm::SmallPtrSet<const llvm::Function*, 8> annotated(const llvm::Module& module) {
  llvm::SmallPtrSet<const llvm::Function*, 8> found;
  const llvm::GlobalVariable* const all = module.getGlobalVariable("llvm.global.annotations");
  if (all == nullptr || !all->hasInitializer()) {
    return found;
  }
  for (const llvm::Use& each : all->getInitializer()->operands()) {
    const auto* const entry = llvm::dyn_cast<llvm::ConstantStruct>(each);
    if (entry == nullptr) {
      continue;
    }
    const auto* const function = llvm::dyn_cast<llvm::Function>(entry->getOperand(0)->stripPointerCasts());
    const auto* const text = llvm::dyn_cast<llvm::GlobalVariable>(entry->getOperand(1)->stripPointerCasts());
    if (function == nullptr || text == nullptr || !text->hasInitializer()) {
      continue;
    }
    const auto* const string = llvm::dyn_cast<llvm::ConstantDataSequential>(text->getInitializer());
    if (string != nullptr && string->isCString() && string->getAsCString() == "pirn::suspends") {
      found.insert(function);
    }
  }
  return found;
}

/// Returns whether a function with a name of pirn may suspend. Code below the contexts does not, nor do functions that
/// report a mistake.
bool of_pirn_may_suspend(const llvm::Function& function) {
  for (const char* part : {"8platform", "12guarded_pool", "18default_stack_pool", "10find_guard", "5trace"}) {
    if (function.getName().contains(part)) {
      return false;
    }
  }
  return !function.doesNotReturn();
}

bool is_of_pirn(llvm::StringRef symbol) {
  return symbol.starts_with("_ZN4pirn") || symbol.starts_with("_ZNK4pirn") || symbol.starts_with("pirn_");
}

}  // namespace

bool is_of_language_runtime(llvm::StringRef symbol) {
  for (const char* prefix :
       {"_ZNSt", "_ZNKSt", "_ZSt", "_ZTH", "_Zn", "_Zd", "__cxa_", "_Unwind_", "__clang_call_terminate", "__gxx_",
        "__asan_", "__tsan_", "__ubsan_", "__sanitizer_", "__stack_chk_", "__tls_", "llvm."}) {
    if (symbol.starts_with(prefix)) {
      return true;
    }
  }
  return false;
}

llvm::Function* named_callee(const llvm::CallBase& call) {
  llvm::Value* called = call.getCalledOperand()->stripPointerCasts();
  if (auto* const alias = llvm::dyn_cast<llvm::GlobalAlias>(called)) {
    called = alias->getAliaseeObject();
  }
  return llvm::dyn_cast_or_null<llvm::Function>(called);
}

std::string readable_name(llvm::StringRef symbol) {
  std::string name;
  llvm::ItaniumPartialDemangler parts;
  const std::string mangled = symbol.str();
  if (!parts.partialDemangle(mangled.c_str()) && parts.isFunction()) {
    char* const function = parts.getFunctionName(nullptr, nullptr);
    name = function;
    std::free(function);
  } else {
    name = llvm::demangle(mangled);
  }
  if (const std::size_t build = name.find("pirn::v1_"); build != std::string::npos) {
    const std::size_t begin = build + 4;
    if (const std::size_t end = name.find("::", begin + 2); end != std::string::npos) {
      name.erase(begin, end - begin);
    }
  }
  return name;
}

suspension::suspension(llvm::Module& module, llvm::ModuleAnalysisManager& analyses, unknown_calls unknown) {
  auto& functions = analyses.getResult<llvm::FunctionAnalysisManagerModuleProxy>(module).getManager();
  const auto of_source = annotated(module);
  const auto declared_may = [&](llvm::Function& function) {
    const llvm::StringRef name = function.getName();
    llvm::LibFunc known;
    if (of_source.contains(&function) || function.getCallingConv() == llvm::CallingConv::PreserveNone) {
      return true;
    }
    if (function.isIntrinsic() || is_accessor(function) || function.hasFnAttribute(llvm::Attribute::NoCallback) ||
        (function.onlyReadsMemory() && function.doesNotThrow())) {
      return false;  // a function that suspends lets other fibers run: it calls back, and it writes
    }
    if (is_of_pirn(name)) {
      return of_pirn_may_suspend(function);
    }
    return unknown == unknown_calls::assume_suspending && !is_of_language_runtime(name) &&
           !functions.getResult<llvm::TargetLibraryAnalysis>(function).getLibFunc(function, known);
  };

  llvm::SmallVector<llvm::Function*, 32> work;
  const auto found = [&](llvm::Function* function) {
    if (suspending_.insert(function).second) {
      work.push_back(function);
    }
  };
  for (llvm::Function& each : module) {
    // A definition that another one may replace is as unknown as a declaration.
    if (of_source.contains(&each) || ((each.isDeclaration() || each.isInterposable()) && declared_may(each))) {
      found(&each);
    }
    for (const llvm::Instruction& instruction : llvm::instructions(each)) {
      const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
      if (call != nullptr && named_callee(*call) == nullptr && may_suspend(*call)) {
        found(&each);
        break;
      }
    }
  }
  while (!work.empty()) {
    llvm::SmallVector<llvm::Value*, 4> names = {work.pop_back_val()};
    while (!names.empty()) {
      for (llvm::User* user : names.pop_back_val()->users()) {
        if (auto* const call = llvm::dyn_cast<llvm::CallBase>(user)) {
          if (named_callee(*call) != nullptr && may_suspend(*call)) {
            found(call->getFunction());
          }
        } else if (llvm::isa<llvm::GlobalAlias, llvm::ConstantExpr>(user)) {
          names.push_back(user);
        }
      }
    }
  }
}

bool suspension::may_suspend(const llvm::CallBase& call) const {
  if (call.isInlineAsm()) {
    return is_switch(call);
  }
  const llvm::Function* const callee = named_callee(call);
  return callee == nullptr ? !call.hasFnAttr(llvm::Attribute::NoCallback) : suspending_.contains(callee);
}

}  // namespace pirn::plugin
