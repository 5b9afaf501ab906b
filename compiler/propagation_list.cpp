// The convention is not part of a name, so a listed function gets another name with it: void f() becomes
// _Z1fv.preserve_none, where it is defined and where it is called. A file that was compiled without the list asks the
// linker for _Z1fv, which does not exist. The address of such a function would be called with the ordinary convention.
// So it is replaced by that of a function with the ordinary convention that calls the listed one.
#include "propagation_list.hpp"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Demangle/Demangle.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"
#include "propagation_convention.hpp"
#include "propagation_refusals.hpp"

namespace pirn::plugin {
namespace {

std::string without_parameters(const std::string& symbol) {
  llvm::ItaniumPartialDemangler parts;
  if (parts.partialDemangle(symbol.c_str())) {
    return symbol;
  }
  char* const text = parts.getFunctionName(nullptr, nullptr);
  std::string name = text == nullptr ? symbol : text;
  std::free(text);
  return name;
}

// operator[] and operator new[] are names: no pattern requests one character of an empty set.
std::string without_empty_sets(llvm::StringRef name) {
  llvm::SmallVector<llvm::StringRef, 2> parts;
  name.split(parts, "[]");
  return llvm::join(parts, R"(\[\])");
}

void report(const llvm::GlobalValue& function, const std::string& why) {
  function.getContext().emitError("pirn: '" + readable(function) +
                                  "' is listed and cannot have the convention: " + why);
}

// Runs `action` for each call whose callee is written as `callee`, the function or another name of it.
template <class Do>
void for_each_call(llvm::GlobalValue& callee, const Do& action) {
  for (llvm::User* user : llvm::make_early_inc_range(callee.users())) {
    if (auto* const call = llvm::dyn_cast<llvm::CallBase>(user);
        call != nullptr && call->getCalledOperand() == &callee) {
      action(*call);
    }
  }
}

class listing {
 public:
  listing(llvm::Module& module, const name_list& list);
  bool apply();

 private:
  bool names(const llvm::GlobalValue& value) const { return list_.names(value.getName()); }
  bool check(llvm::Function& function) const;
  bool check_call(const llvm::CallBase& call, const llvm::GlobalValue& callee) const;
  void replace_address(llvm::GlobalValue& listed, llvm::Function& function);
  void rename(llvm::GlobalValue& listed, llvm::Function& function) const;

  llvm::Module& module_;
  const name_list& list_;
  llvm::SmallPtrSet<llvm::GlobalValue*, 8> used_;
  std::vector<llvm::Function*> functions_;
  std::vector<llvm::GlobalAlias*> aliases_;
  llvm::SmallPtrSet<const llvm::GlobalValue*, 16> listed_;
};

listing::listing(llvm::Module& module, const name_list& list) : module_(module), list_(list) {
  llvm::SmallVector<llvm::GlobalValue*, 8> used;
  llvm::collectUsedGlobalVariables(module, used, false);
  llvm::collectUsedGlobalVariables(module, used, true);
  used_.insert(used.begin(), used.end());
  for (llvm::Function& function : module) {
    if (!function.isIntrinsic() && function.getCallingConv() == llvm::CallingConv::C && names(function)) {
      functions_.push_back(&function);
      listed_.insert(&function);
    }
  }
  for (llvm::GlobalAlias& alias : module.aliases()) {
    if (llvm::isa<llvm::Function>(alias.getAliaseeObject()) && names(alias)) {
      aliases_.push_back(&alias);
      listed_.insert(&alias);
    }
  }
}

bool listing::check_call(const llvm::CallBase& call, const llvm::GlobalValue& callee) const {
  const llvm::Function& caller = *call.getFunction();
  std::string why = call_refusal(call);
  if (const std::string here = caller_refusal(caller); why.empty() && !here.empty()) {
    why = "'" + readable(caller) + "' calls it, but cannot: " + here;
  }
  if (!why.empty()) {
    report(callee, why);
  }
  return why.empty();
}

bool listing::check(llvm::Function& function) const {
  std::string why = signature_refusal(function);
  if (why.empty() && !function.isDeclaration()) {
    why = body_refusal(function);
  }
  for (llvm::User* user : function.users()) {
    if (llvm::isa<llvm::GlobalIFunc>(user)) {
      why = "the dynamic linker calls it (ifunc)";
    } else if (llvm::isa<llvm::GlobalAlias>(user) && !listed_.contains(llvm::cast<llvm::GlobalAlias>(user))) {
      why = "its alias '" + readable(*llvm::cast<llvm::GlobalValue>(user)) + "' is not listed";
    }
  }
  if (!why.empty()) {
    report(function, why);
    return false;
  }
  bool good = true;
  for_each_call(function, [&](const llvm::CallBase& call) { good &= check_call(call, function); });
  return good;
}

// Returns whether the use needs the function's address as a value.
bool is_address(const llvm::Use& use, const llvm::SmallPtrSetImpl<llvm::GlobalValue*>& used) {
  const llvm::User* const user = use.getUser();
  if (const auto* const call = llvm::dyn_cast<llvm::CallBase>(user)) {
    return !call->isCallee(&use);
  }
  if (llvm::isa<llvm::BlockAddress>(user) || llvm::isa<llvm::GlobalAlias>(user)) {
    return false;
  }
  if (used.contains(llvm::cast<llvm::GlobalValue>(use.get())) && llvm::isa<llvm::ConstantArray>(user)) {
    for (const llvm::User* holder : user->users()) {
      const auto* const variable = llvm::dyn_cast<llvm::GlobalVariable>(holder);
      if (variable != nullptr && (variable->getName() == "llvm.used" || variable->getName() == "llvm.compiler.used")) {
        return false;
      }
    }
  }
  return true;
}

void listing::replace_address(llvm::GlobalValue& listed, llvm::Function& function) {
  bool wanted = false;
  for (const llvm::Use& use : listed.uses()) {
    wanted |= is_address(use, used_);
  }
  if (!wanted) {
    return;
  }
  const bool local = listed.hasLocalLinkage();
  const std::string name = listed.getName().str() + ordinary_ending;
  auto* const ordinary = llvm::Function::Create(
      function.getFunctionType(), local ? llvm::GlobalValue::InternalLinkage : llvm::GlobalValue::LinkOnceODRLinkage,
      function.getAddressSpace(), name, &module_);
  ordinary->setAttributes(function.getAttributes());
  for (const auto kind : {llvm::Attribute::AlwaysInline, llvm::Attribute::InlineHint}) {
    ordinary->removeFnAttr(kind);
  }
  if (!local) {
    ordinary->setVisibility(llvm::GlobalValue::HiddenVisibility);
    ordinary->setDSOLocal(true);
    ordinary->setComdat(module_.getOrInsertComdat(name));
  }
  listed.replaceUsesWithIf(ordinary, [&](llvm::Use& use) { return is_address(use, used_); });

  llvm::IRBuilder<> code(llvm::BasicBlock::Create(module_.getContext(), "", ordinary));
  llvm::SmallVector<llvm::Value*, 8> arguments;
  for (llvm::Argument& argument : ordinary->args()) {
    arguments.push_back(&argument);
  }
  llvm::CallInst* const call = code.CreateCall(function.getFunctionType(), &listed, arguments);
  call->setAttributes(llvm::AttributeList::get(module_.getContext(), {}, function.getAttributes().getRetAttrs(), [&] {
    llvm::SmallVector<llvm::AttributeSet, 8> each;
    for (unsigned i = 0; i != arguments.size(); ++i) {
      each.push_back(function.getAttributes().getParamAttrs(i));
    }
    return each;
  }()));
  if (function.getReturnType()->isVoidTy()) {
    code.CreateRetVoid();
  } else {
    code.CreateRet(call);
  }
}

// Local functions keep their names, because no other file can confuse them.
void listing::rename(llvm::GlobalValue& listed, llvm::Function& function) const {
  if (listed.hasLocalLinkage()) {
    return;
  }
  const std::string old = listed.getName().str();
  const std::string name = old + listed_ending;
  listed.setName(name);
  // A group with the old name would be merged with that of a file in which the function has the other convention.
  if (llvm::Comdat* const group = function.getComdat(); group != nullptr && group->getName() == old) {
    llvm::Comdat* const another = module_.getOrInsertComdat(name);
    another->setSelectionKind(group->getSelectionKind());
    for (llvm::GlobalObject* member : llvm::to_vector(group->getUsers())) {
      member->setComdat(another);
    }
  }
}

bool listing::apply() {
  bool good = true;
  for (llvm::Function* function : functions_) {
    good &= check(*function);
  }
  for (llvm::GlobalAlias* alias : aliases_) {
    auto& function = *llvm::cast<llvm::Function>(alias->getAliaseeObject());
    if (!listed_.contains(&function)) {
      report(*alias, "'" + readable(function) + "', of which it is an alias, is not listed");
      good = false;
    }
    for_each_call(*alias, [&](const llvm::CallBase& call) { good &= check_call(call, *alias); });
  }
  if (!good) {
    return false;
  }
  const auto apply_to = [&](llvm::GlobalValue& listed, llvm::Function& function) {
    replace_address(listed, function);
    for_each_call(listed, [](llvm::CallBase& call) { call.setCallingConv(llvm::CallingConv::PreserveNone); });
    rename(listed, function);
  };
  for (llvm::GlobalAlias* alias : aliases_) {
    apply_to(*alias, *llvm::cast<llvm::Function>(alias->getAliaseeObject()));
  }
  for (llvm::Function* function : functions_) {
    apply_to(*function, *function);
    function->setCallingConv(llvm::CallingConv::PreserveNone);
  }
  return !listed_.empty();
}

}  // namespace

llvm::Expected<name_list> name_list::read(llvm::StringRef path) {
  auto text = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!text) {
    return llvm::createStringError(text.getError(), "pirn: cannot read the list %s: %s", path.str().c_str(),
                                   text.getError().message().c_str());
  }
  name_list list;
  llvm::SmallVector<llvm::StringRef> lines;
  (*text)->getBuffer().split(lines, '\n');
  for (const auto& [number, whole] : llvm::enumerate(lines)) {
    llvm::StringRef name = whole.split('#').first.trim();
    const bool excludes = name.consume_front("!");
    if (name = name.trim(); name.empty()) {
      continue;
    }
    llvm::Expected<llvm::GlobPattern> pattern =
        llvm::GlobPattern::create(list.patterns_.emplace_back(without_empty_sets(name)));
    if (!pattern) {
      return llvm::createStringError(llvm::inconvertibleErrorCode(), "pirn: %s:%zu: %s", path.str().c_str(), number + 1,
                                     llvm::toString(pattern.takeError()).c_str());
    }
    list.lines_.push_back({name, excludes, std::move(*pattern)});
  }
  list.text_ = std::move(*text);
  return list;
}

bool name_list::names(llvm::StringRef symbol) const {
  const std::string mangled = symbol.str();
  const std::string forms[] = {mangled, llvm::demangle(mangled), without_parameters(mangled)};
  for (auto each = lines_.rbegin(); each != lines_.rend(); ++each) {
    for (const std::string& form : forms) {
      // A name may contain characters that are special in a pattern: operator*, char*, [abi:cxx11].
      if (form == each->text || each->pattern.match(form)) {
        return !each->excludes;
      }
    }
  }
  return false;
}

bool apply_list(llvm::Module& module, const name_list& list) { return listing(module, list).apply(); }

void check_listed_calls(const llvm::Module& module) {
  for (const llvm::Function& function : module) {
    if (!function.getName().ends_with(listed_ending)) {
      continue;
    }
    for (const llvm::User* user : function.users()) {
      if (const auto* const call = llvm::dyn_cast<llvm::CallBase>(user)) {
        const llvm::Function& caller = *call->getFunction();
        if (const std::string why = caller_refusal(caller); !why.empty()) {
          report(function, "'" + readable(caller) + "' calls it, but cannot: " + why);
        }
      }
    }
  }
}

}  // namespace pirn::plugin
