// Decides which signatures, bodies, calls and callers the convention allows.
#include "propagation_refusals.hpp"

#include "llvm/IR/EHPersonalities.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/TargetParser/Triple.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"
#include "propagation_convention.hpp"

namespace pirn::plugin {
namespace {

// There are twelve on x86-64, but the eleventh is r11, which the stub of a lazily bound symbol overwrites, as does a
// prologue that probes the stack; the twelfth is rax.
constexpr unsigned max_argument_words = 10;
constexpr unsigned max_result_parts = 2;
constexpr unsigned widest_vector = 128;  // in bits: the place of a wider one depends on the features of the caller

// Adds up the general registers that the type takes, and the number of its values. Returns false if the type has no
// place here.
bool measure(llvm::Type* type, const llvm::DataLayout& layout, unsigned& words, unsigned& parts) {
  if (type->isVoidTy()) {
    return true;
  }
  if (auto* const record = llvm::dyn_cast<llvm::StructType>(type)) {
    for (llvm::Type* each : record->elements()) {
      if (!measure(each, layout, words, parts)) {
        return false;
      }
    }
    return true;
  }
  if (auto* const array = llvm::dyn_cast<llvm::ArrayType>(type)) {
    for (std::uint64_t i = 0; i != array->getNumElements() && words <= 64 && parts <= 64; ++i) {
      if (!measure(array->getElementType(), layout, words, parts)) {
        return false;
      }
    }
    return true;
  }
  ++parts;
  if (type->isIntegerTy() || type->isPointerTy()) {
    const auto here = static_cast<unsigned>((layout.getTypeSizeInBits(type).getFixedValue() + 63) / 64);
    words += here;
    parts += here - 1;
    return true;
  }
  if (type->isVectorTy()) {
    auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
    return vector != nullptr && !vector->getElementType()->isIntegerTy(1) &&
           layout.getTypeSizeInBits(vector).getFixedValue() <= widest_vector;
  }
  return type->isFloatingPointTy();
}

// Finds arguments and results with a special way of passing, which this convention does not have.
std::string attribute_refusal(const llvm::AttributeList& attributes, std::size_t arguments) {
  constexpr std::pair<llvm::Attribute::AttrKind, const char*> refused[] = {
      {llvm::Attribute::ByVal, "a copy on the stack (byval)"},
      {llvm::Attribute::InAlloca, "a caller's frame (inalloca)"},
      {llvm::Attribute::Preallocated, "a caller's frame (preallocated)"},
      {llvm::Attribute::ByRef, "a caller's copy (byref)"},
      {llvm::Attribute::Nest, "a static chain (nest)"},
      {llvm::Attribute::InReg, "a dedicated register (inreg)"},
      {llvm::Attribute::SwiftSelf, "a register of the Swift convention"},
      {llvm::Attribute::SwiftError, "a register of the Swift convention"},
      {llvm::Attribute::SwiftAsync, "a register of the Swift convention"},
  };
  for (unsigned i = 0; i < arguments; ++i) {
    for (const auto& [kind, what] : refused) {
      if (attributes.hasParamAttr(i, kind)) {
        return std::string("an argument is passed in ") + what;
      }
    }
  }
  return attributes.hasRetAttr(llvm::Attribute::InReg) ? "the result is passed in a dedicated register (inreg)" : "";
}

bool moves_the_stack_pointer(const llvm::Instruction& instruction) {
  if (const auto* const local = llvm::dyn_cast<llvm::AllocaInst>(&instruction)) {
    return !local->isStaticAlloca();
  }
  const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
  if (call == nullptr) {
    return false;
  }
  const auto* const code = llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand());
  return code != nullptr && (llvm::StringRef(code->getConstraintString()).contains("sp}") || code->isAlignStack());
}

// Returns whether a value of the type may have more than the alignment of a stack in a frame.
bool is_wide(const llvm::Type* type, const llvm::DataLayout& layout) {
  return type->isVectorTy() || (type->isSized() && !type->isAggregateType() &&
                                layout.getPrefTypeAlign(const_cast<llvm::Type*>(type)) > llvm::Align(16));
}

// Returns whether the code generator may address the frame through a base register: one that is not the frame pointer
// and that a call with this convention overwrites. On AArch64 a large frame of variable size is enough; on x86-64 it
// has to be realigned too.
bool may_use_base_pointer(const llvm::Function& function) {
  const llvm::Module& module = *function.getParent();
  const bool any = llvm::Triple(module.getTargetTriple()).isAArch64();
  bool moves = false;
  bool realigned = function.hasFnAttribute("stackrealign") || function.hasFnAttribute(llvm::Attribute::StackAlignment);
  for (const llvm::Argument& argument : function.args()) {
    realigned |= is_wide(argument.getType(), module.getDataLayout());
  }
  for (const llvm::Instruction& instruction : llvm::instructions(function)) {
    moves |= moves_the_stack_pointer(instruction);
    realigned |= is_wide(instruction.getType(), module.getDataLayout());
    if (const auto* const local = llvm::dyn_cast<llvm::AllocaInst>(&instruction)) {
      realigned |= local->getAlign() > llvm::Align(16);
    }
    if (const auto* const store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
      realigned |= is_wide(store->getValueOperand()->getType(), module.getDataLayout());
    }
  }
  return moves && (any || realigned);
}

// Sanitizers realign the frame and address it through a register that such a call overwrites.
bool sanitizes_addresses(const llvm::Function& function) {
  return function.hasFnAttribute(llvm::Attribute::SanitizeAddress) ||
         function.hasFnAttribute(llvm::Attribute::SanitizeHWAddress) ||
         function.hasFnAttribute(llvm::Attribute::SanitizeMemTag);
}

// Finds others than the calls in its file that may call the function.
std::string linkage_refusal(const llvm::Function& function, const llvm::SmallPtrSetImpl<llvm::GlobalValue*>& used) {
  for (const llvm::User* user : function.users()) {
    if (llvm::isa<llvm::GlobalAlias>(user)) {
      return "it has an alias ('" + readable(*llvm::cast<llvm::GlobalValue>(user)) + "')";
    }
    if (llvm::isa<llvm::GlobalIFunc>(user)) {
      return "the dynamic linker calls it (ifunc '" + readable(*llvm::cast<llvm::GlobalValue>(user)) + "')";
    }
  }
  if (!function.hasLocalLinkage()) {
    return "other files may call it";
  }
  if (used.contains(const_cast<llvm::Function*>(&function))) {
    return "it is marked as used by code that the compiler does not see";
  }
  return function.hasAddressTaken(nullptr, false, true, true) ? "its address is taken" : "";
}

}  // namespace

std::string signature_refusal(const llvm::Function& function) {
  if (function.isIntrinsic()) {
    return "it is an intrinsic of the compiler";
  }
  if (function.isVarArg()) {
    return "it takes a variable number of arguments";
  }
  if (function.getName() == "main") {
    return "it is the entry point of the program";
  }
  if (std::string why = attribute_refusal(function.getAttributes(), function.arg_size()); !why.empty()) {
    return why;
  }
  const llvm::DataLayout& layout = function.getParent()->getDataLayout();
  unsigned words = 0;
  unsigned parts = 0;
  for (llvm::Type* type : function.getFunctionType()->params()) {
    if (!measure(type, layout, words, parts)) {
      return "the location of an argument depends on target features";
    }
  }
  if (words > max_argument_words) {
    return "its arguments take " + std::to_string(words) + " general registers, and there are " +
           std::to_string(max_argument_words);
  }
  words = parts = 0;
  if (!measure(function.getReturnType(), layout, words, parts)) {
    return "the location of its result depends on target features";
  }
  return parts > max_result_parts ? "its result takes more than two registers" : "";
}

std::string call_refusal(const llvm::CallBase& call) {
  const llvm::Function& caller = *call.getFunction();
  const std::string where = "a call in '" + readable(caller) + "' ";
  if (call.isMustTailCall()) {
    return where + "must be a tail call (musttail)";
  }
  if (llvm::isa<llvm::CallBrInst>(call)) {
    return where + "is an asm goto";
  }
  if (call.hasOperandBundles()) {
    return where + "carries more than its arguments (" + call.getOperandBundleAt(0).getTagName().str() + ")";
  }
  if (const auto* const callee = llvm::dyn_cast<llvm::Function>(call.getCalledOperand())) {
    if (call.getFunctionType() != callee->getFunctionType()) {
      return where + "has other types";
    }
    if (call.getCallingConv() != callee->getCallingConv()) {
      return where + "has another convention";
    }
  }
  if (std::string why = attribute_refusal(call.getAttributes(), call.arg_size()); !why.empty()) {
    return where + "differs: " + why;
  }
  return "";
}

std::string body_refusal(const llvm::Function& function) {
  if (function.hasFnAttribute(llvm::Attribute::Naked)) {
    return "it is naked: its assembly relies on the ordinary convention";
  }
  if (function.isPresplitCoroutine()) {
    return "it is a coroutine that is not split yet";
  }
  if (function.callsFunctionThatReturnsTwice()) {
    return "it calls a function that returns twice, as setjmp does";
  }
  if (function.hasGC()) {
    return "it is garbage-collected";
  }
  if (function.hasPrefixData() || function.hasPrologueData()) {
    return "it has prefix or prologue data";
  }
  for (const char* attribute : {"interrupt", "no_caller_saved_registers", "no_callee_saved_registers", "split-stack",
                                "thunk", "aarch64_pstate_sm_enabled", "aarch64_pstate_sm_compatible",
                                "aarch64_pstate_sm_body", "aarch64_inout_za", "aarch64_new_za"}) {
    if (function.hasFnAttribute(attribute)) {
      return std::string("it has the attribute ") + attribute;
    }
  }
  for (const llvm::Instruction& instruction : llvm::instructions(function)) {
    const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction);
    if (call == nullptr) {
      continue;
    }
    if (call->isMustTailCall()) {
      return "it contains a call that must be a tail call (musttail)";
    }
    switch (call->getIntrinsicID()) {
      case llvm::Intrinsic::localescape:
      case llvm::Intrinsic::eh_sjlj_setjmp:
      case llvm::Intrinsic::eh_sjlj_longjmp:
      case llvm::Intrinsic::eh_unwind_init:
      case llvm::Intrinsic::eh_return_i32:
      case llvm::Intrinsic::eh_return_i64:
      case llvm::Intrinsic::experimental_stackmap:
      case llvm::Intrinsic::experimental_patchpoint_void:
      case llvm::Intrinsic::experimental_gc_statepoint:
        return "it uses " + call->getCalledFunction()->getName().str();
      default:
        break;
    }
  }
  return caller_refusal(function);
}

std::string caller_refusal(const llvm::Function& function) {
  if (sanitizes_addresses(function)) {
    return "it is built with an address sanitizer";
  }
  if (function.hasFnAttribute(llvm::Attribute::Naked)) {
    return "it is naked";
  }
  if (function.hasPersonalityFn() &&
      llvm::isFuncletEHPersonality(llvm::classifyEHPersonality(function.getPersonalityFn()))) {
    return "its exceptions are handled in separate functions (funclets)";
  }
  // The feature that -ffixed-x20 sets. Arguments would be passed in such registers.
  if (function.getFnAttribute("target-features").getValueAsString().contains("+reserve-x")) {
    return "registers are reserved for the program (-ffixed-...)";
  }
  if (may_use_base_pointer(function)) {
    return "its frame has a variable size and may be addressed through a register that such a call overwrites";
  }
  return "";
}

function_refusals::function_refusals(const llvm::Module& module) {
  llvm::SmallVector<llvm::GlobalValue*, 8> used;
  llvm::collectUsedGlobalVariables(module, used, false);
  llvm::collectUsedGlobalVariables(module, used, true);
  used_.insert(used.begin(), used.end());
}

const std::string& function_refusals::refusal_as_caller(const llvm::Function& function) {
  const auto [place, is_new] = as_callers_.try_emplace(&function);
  if (is_new) {
    place->second = caller_refusal(function);
  }
  return place->second;
}

std::string function_refusals::refusal(const llvm::Function& function) {
  if (function.getCallingConv() != llvm::CallingConv::C && function.getCallingConv() != llvm::CallingConv::Fast) {
    return "it already has another convention";
  }
  if (function.hasOptNone()) {
    return "it is not optimized";
  }
  if (std::string why = linkage_refusal(function, used_); !why.empty()) {
    return why;
  }
  if (std::string why = signature_refusal(function); !why.empty()) {
    return why;
  }
  if (std::string why = body_refusal(function); !why.empty()) {
    return why;
  }
  for (const llvm::User* user : function.users()) {
    if (const auto* const call = llvm::dyn_cast<llvm::CallBase>(user)) {
      if (std::string why = call_refusal(*call); !why.empty()) {
        return why;
      }
      if (const std::string& why = refusal_as_caller(*call->getFunction()); !why.empty()) {
        return "its caller '" + readable(*call->getFunction()) + "' cannot call such a function: " + why;
      }
    }
  }
  return "";
}

bool sanitizes_addresses(const llvm::Module& module) {
  return llvm::any_of(module, [](const llvm::Function& each) { return sanitizes_addresses(each); });
}

}  // namespace pirn::plugin
