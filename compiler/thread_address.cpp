// Recognizes calls whose result depends on the thread, and makes accessors of thread-local variables.
#include "thread_address.hpp"

#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/TargetParser/Triple.h"
#include "suspension.hpp"

namespace pirn::plugin {
namespace {

constexpr const char* accessor_mark = "pirn-thread-local";

std::string name_of(const llvm::GlobalValue& variable) {
  llvm::SmallVector<llvm::DIGlobalVariableExpression*, 1> described;
  if (const auto* const itself = llvm::dyn_cast<llvm::GlobalVariable>(&variable)) {  // and not an alias of one
    itself->getDebugInfo(described);
  }
  if (!described.empty() && !described.front()->getVariable()->getName().empty()) {
    return described.front()->getVariable()->getName().str();
  }
  return readable_name(variable.getName());
}

/// Copies the attributes that describe the code around a function and not its effects.
void take_over_target(llvm::Function& to, const llvm::Function& from) {
  for (const char* each : {"target-cpu", "target-features", "tune-cpu", "frame-pointer", "branch-target-enforcement",
                           "sign-return-address", "sign-return-address-key", "branch-protection-pauth-lr"}) {
    if (from.hasFnAttribute(each)) {
      to.addFnAttr(from.getFnAttribute(each));
    }
  }
  if (from.hasFnAttribute(llvm::Attribute::UWTable)) {
    to.addFnAttr(from.getFnAttribute(llvm::Attribute::UWTable));
  }
}

std::optional<std::string> thread_value(const llvm::CallBase& call, int depth);

/// Returns whether its result is a thread-local address that is computed without reading memory.
bool returns_thread_address(const llvm::Function& function, int depth) {
  if (depth == 0 || !function.doesNotAccessMemory()) {
    return false;
  }
  for (const llvm::Instruction& each : llvm::instructions(function)) {
    const auto* const call = llvm::dyn_cast<llvm::CallBase>(&each);
    if (call != nullptr && thread_value(*call, depth - 1)) {
      return true;
    }
  }
  return false;
}

std::optional<std::string> thread_value(const llvm::CallBase& call, int depth) {
  if (const llvm::GlobalValue* const variable = variable_of(call)) {
    return name_of(*variable);
  }
  const llvm::Function* const callee = named_callee(call);
  if (callee == nullptr || callee->isIntrinsic()) {
    return std::nullopt;
  }
  if (is_accessor(*callee)) {
    return callee->getFnAttribute(accessor_mark).getValueAsString().str();
  }
  const llvm::StringRef symbol = callee->getName();
  if (symbol == "__errno_location") {
    return "errno";
  }
  if (symbol == "pthread_self" || symbol == "thrd_current") {
    return (symbol + "()").str();
  }
  if (symbol.starts_with("_ZTW")) {
    return readable_name(("_Z" + symbol.drop_front(4)).str());
  }
  // A function with an argument probably looks up a table.
  if (callee->arg_empty() && callee->getReturnType()->isPointerTy() &&
      (is_presumed_constant(*callee) || (!callee->isDeclaration() && returns_thread_address(*callee, depth)))) {
    return readable_name(symbol) + "()";
  }
  return std::nullopt;
}

}  // namespace

bool is_accessor(const llvm::Function& function) { return function.hasFnAttribute(accessor_mark); }

llvm::GlobalValue* variable_of(const llvm::CallBase& intrinsic) {
  if (intrinsic.getIntrinsicID() != llvm::Intrinsic::threadlocal_address) {
    return nullptr;
  }
  return llvm::dyn_cast<llvm::GlobalValue>(intrinsic.getArgOperand(0)->stripPointerCasts());
}

llvm::GlobalValue* variable_of(const llvm::Function& accessor) {
  if (is_accessor(accessor)) {
    for (const llvm::Instruction& each : llvm::instructions(accessor)) {
      if (const auto* const call = llvm::dyn_cast<llvm::CallBase>(&each)) {
        return variable_of(*call);
      }
    }
  }
  return nullptr;
}

llvm::Function* accessor_of(llvm::GlobalValue& variable, const llvm::Function& user) {
  llvm::Module& module = *variable.getParent();
  const std::string name = ("pirn.thread_local." + variable.getName()).str();
  llvm::Function* const present = module.getFunction(name);
  if (present != nullptr && !present->isDeclaration() && variable_of(*present) == &variable) {
    return present;
  }
  const bool local = variable.hasLocalLinkage();
  auto* const made =
      llvm::Function::Create(llvm::FunctionType::get(variable.getType(), false),
                             local ? llvm::GlobalValue::InternalLinkage : llvm::GlobalValue::LinkOnceODRLinkage,
                             module.getDataLayout().getProgramAddressSpace(), name, &module);
  if (!local) {
    made->setVisibility(llvm::GlobalValue::HiddenVisibility);
    made->setDSOLocal(true);
    if (llvm::Triple(module.getTargetTriple()).supportsCOMDAT()) {
      made->setComdat(module.getOrInsertComdat(made->getName()));
    }
  }
  take_over_target(*made, user);
  made->addFnAttr(accessor_mark, name_of(variable));
  made->addFnAttr(llvm::Attribute::NoInline);
  made->addFnAttr(llvm::Attribute::NoUnwind);
  made->addFnAttr(llvm::Attribute::WillReturn);
  made->addFnAttr(llvm::Attribute::NoCallback);
  made->addFnAttr(llvm::Attribute::NoFree);
  if (!variable.hasExternalWeakLinkage()) {
    made->addRetAttr(llvm::Attribute::NonNull);
  }
  if (const llvm::MaybeAlign align = variable.getPointerAlignment(module.getDataLayout()); align) {
    made->addRetAttr(llvm::Attribute::getWithAlignment(module.getContext(), *align));
  }
  // The identity of the thread is state that only unknown code changes.
  made->setMemoryEffects(llvm::MemoryEffects::inaccessibleMemOnly(llvm::ModRefInfo::Ref));

  llvm::IRBuilder<> builder(llvm::BasicBlock::Create(module.getContext(), "", made));
  llvm::Value* const address = builder.CreateThreadLocalAddress(&variable);
  // The asm, without an instruction, keeps analyses from concluding more from the body than is stated above.
  auto* const opaque =
      llvm::InlineAsm::get(llvm::FunctionType::get(variable.getType(), {variable.getType()}, false), "", "=r,0", true);
  builder.CreateRet(builder.CreateCall(opaque, {address}));
  return made;
}

bool is_presumed_constant(const llvm::Function& function) {
  return function.isDeclaration() && !function.isIntrinsic() && !is_accessor(function) &&
         !function.getReturnType()->isVoidTy() && function.doesNotAccessMemory() &&
         !is_of_language_runtime(function.getName());
}

std::optional<std::string> thread_value(const llvm::CallBase& call) {
  constexpr int functions_that_return_what_another_does = 4;
  return thread_value(call, functions_that_return_what_another_does);
}

}  // namespace pirn::plugin
