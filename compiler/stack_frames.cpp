// Reads frames from a run of the code generator, in the same way as it will run for the object file: only it knows the
// spills, the saves and the alignment of a frame. The run is for a copy in a separate context, so that neither its
// diagnostics nor its changes reach the compilation. It ends before anything is printed.
#include "stack_frames.hpp"

#include <algorithm>
#include <memory>

#include "llvm/ADT/SmallVector.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/CodeGen/MachineFrameInfo.h"
#include "llvm/CodeGen/MachineFunction.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/CodeGen/MachineInstr.h"
#include "llvm/CodeGen/TargetFrameLowering.h"
#include "llvm/CodeGen/TargetInstrInfo.h"
#include "llvm/CodeGen/TargetLowering.h"
#include "llvm/CodeGen/TargetRegisterInfo.h"
#include "llvm/CodeGen/TargetSubtargetInfo.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/GlobalAlias.h"
#include "llvm/IR/GlobalIFunc.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSymbol.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "stack_asm.hpp"

namespace pirn::plugin {

namespace {

using namespace llvm;

/// Returns the name of the function that a call of `value` reaches; empty for a pointer in memory.
StringRef called(const GlobalValue& value) {
  if (isa<GlobalIFunc>(value) || (isa<GlobalAlias>(value) && may_be_replaced(value))) {
    return value.getName();  // its target is unknown, and so is its stack unless a fact is given
  }
  if (const auto* const alias = dyn_cast<GlobalAlias>(&value)) {
    const auto* const behind = dyn_cast_or_null<Function>(alias->getAliaseeObject());
    return behind != nullptr ? behind->getName() : StringRef();
  }
  return isa<Function>(value) ? value.getName() : StringRef();
}

/// Returns whether calls through a pointer use this thunk, which jumps to the address in a register.
bool is_thunk_of_pointers(StringRef name) {
  return name.starts_with("__llvm_lvi_thunk_") || name.starts_with("__llvm_retpoline_") ||
         name.starts_with("__llvm_external_retpoline_") || name.starts_with("__x86_indirect_thunk_");
}

class frame_reader : public MachineFunctionPass {
 public:
  explicit frame_reader(stack_frames& to) : MachineFunctionPass(id), to_(to) {}
  StringRef getPassName() const override { return "pirn: read frames"; }

  bool runOnMachineFunction(MachineFunction& function) override {
    stack_frame& frame = to_[function.getName().str()];
    measure(function, frame);
    const TargetInstrInfo& names = *function.getSubtarget().getInstrInfo();
    const Register sp = function.getSubtarget().getTargetLowering()->getStackPointerRegisterToSaveRestore();
    for (const MachineBasicBlock& block : function) {
      bool pushed = false;
      for (const MachineInstr& instruction : block) {
        read(instruction, names, sp, frame);
        const StringRef name = names.getName(instruction.getOpcode());
        if (pushed && name.starts_with("POP")) {
          frame.calls.push_back({"asm 8", false});  // a constant or the flags, on the way from one register to another
        }
        const bool is_push = name.starts_with("PUSH") && !instruction.getFlag(MachineInstr::FrameSetup);
        pushed = is_push || (pushed && !instruction.isCall() && !name.starts_with("POP"));
      }
    }
    std::sort(frame.calls.begin(), frame.calls.end());
    frame.calls.erase(std::unique(frame.calls.begin(), frame.calls.end()), frame.calls.end());
    if (const DISubprogram* const where = function.getFunction().getSubprogram()) {
      frame.file = (where->getFilename() + ":" + Twine(where->getLine())).str();
    }
    return false;
  }

 private:
  static void measure(const MachineFunction& function, stack_frame& frame) {
    const MachineFrameInfo& info = function.getFrameInfo();
    const TargetSubtargetInfo& target = function.getSubtarget();
    const bool naked = function.getFunction().hasFnAttribute(Attribute::Naked);
    const std::uint64_t return_address = 8;
    if (info.hasVarSizedObjects() || info.hasOpaqueSPAdjustment()) {
      frame.why_none = "it allocates an amount of stack that is known only at run time (alloca)";
    }
    frame.bytes = return_address + (naked ? 0 : info.getStackSize());
    if (naked) {
      return;
    }
    // A leaf function keeps data below its sp, which does not count as its frame.
    for (int each = info.getObjectIndexBegin(); each != info.getObjectIndexEnd(); ++each) {
      if (!info.isDeadObjectIndex(each) && !info.isVariableSizedObjectIndex(each) && info.getObjectOffset(each) < 0) {
        frame.bytes = std::max(frame.bytes, static_cast<std::uint64_t>(-info.getObjectOffset(each)));
      }
    }
    if (!target.getFrameLowering()->hasReservedCallFrame(function)) {
      frame.bytes += info.getMaxCallFrameSize() + target.getFrameLowering()->getStackAlign().value();
    }
    if (target.getRegisterInfo()->hasStackRealignment(function)) {
      frame.bytes += info.getMaxAlign().value();
    }
  }

  static void read(const MachineInstr& instruction, const TargetInstrInfo& names, Register sp, stack_frame& frame) {
    if (instruction.isInlineAsm()) {
      const std::optional<std::uint64_t> bytes =
          stack_of_asm(instruction.getOperand(InlineAsm::MIOp_AsmString).getSymbolName(),
                       {instruction.getInlineAsmDialect() == InlineAsm::AD_Intel,
                        instruction.modifiesRegister(sp, /*TRI=*/nullptr)});
      if (bytes) {
        if (*bytes != 0) {
          frame.calls.push_back({("asm " + Twine(*bytes)).str(), false});
        }
      } else if (frame.why_none.empty()) {
        frame.why_none =
            "it has inline asm that uses the stack and does not say how much (by a comment pirn-stack: BYTES)";
      }
      return;
    }
    const StringRef name = names.getName(instruction.getOpcode());
    if (name.starts_with("TLS_")) {  // it becomes a call only when it is printed
      frame.calls.push_back({"__tls_get_addr", false});
      return;
    }
    if (name.starts_with("FENTRY_CALL") || name.starts_with("PATCHABLE_")) {
      frame.why_none = "it is instrumented";
      return;
    }
    if (!instruction.isCall()) {
      return;
    }
    const bool last = instruction.isReturn();
    for (const MachineOperand& operand : instruction.operands()) {
      if (operand.isSymbol() && is_thunk_of_pointers(operand.getSymbolName())) {
        frame.calls.push_back({"asm 16", last});  // its own return address, and the one that it replaces by the target
        break;
      }
      if (operand.isGlobal()) {
        if (const StringRef callee = called(*operand.getGlobal()); !callee.empty()) {
          frame.calls.push_back({callee.str(), last});
          return;
        }
      } else if (operand.isSymbol()) {
        frame.calls.push_back({operand.getSymbolName(), last});
        return;
      } else if (operand.isMCSymbol()) {
        frame.calls.push_back({operand.getMCSymbol()->getName().str(), last});
        return;
      }
    }
    frame.indirect_is_last = last && (!frame.indirect || frame.indirect_is_last);
    frame.indirect = true;
  }

  static char id;
  stack_frames& to_;
};
char frame_reader::id = 0;

/// The code generator's own list of passes, with one more before the last, which frees the machine functions.
class tapped_passes : public legacy::PassManager {
 public:
  explicit tapped_passes(stack_frames& to) : to_(to) {}
  void add(Pass* pass) override {
    if (pass->getPassName() == "Free MachineFunction") {
      legacy::PassManager::add(new frame_reader(to_));
      tapped_ = true;
    }
    legacy::PassManager::add(pass);
  }
  [[nodiscard]] bool tapped() const { return tapped_; }

 private:
  stack_frames& to_;
  bool tapped_ = false;
};

CodeGenOptLevel effort(OptimizationLevel level) {
  return level == OptimizationLevel::O0   ? CodeGenOptLevel::None
         : level == OptimizationLevel::O1 ? CodeGenOptLevel::Less
         : level == OptimizationLevel::O3 ? CodeGenOptLevel::Aggressive
                                          : CodeGenOptLevel::Default;
}

/// Returns the target machine that clang and lld make from the options of this module's compilation.
std::unique_ptr<TargetMachine> target_for(const Module& module, OptimizationLevel level, std::string& why_none) {
#if LLVM_VERSION_MAJOR >= 21
  const Triple& triple = module.getTargetTriple();
  const Target* const target = TargetRegistry::lookupTarget(triple, why_none);
#else
  const std::string triple = module.getTargetTriple();
  const Target* const target = TargetRegistry::lookupTarget(triple, why_none);
#endif
  if (target == nullptr) {
    return nullptr;
  }
  const Reloc::Model relocation = module.getPICLevel() == PICLevel::NotPIC ? Reloc::Static : Reloc::PIC_;
  return std::unique_ptr<TargetMachine>(
      target->createTargetMachine(triple, "", "", TargetOptions(), relocation, module.getCodeModel(), effort(level)));
}

}  // namespace

bool may_be_replaced(const GlobalValue& value) {
  return value.isInterposable() || value.hasLinkOnceODRLinkage() || value.hasWeakODRLinkage();
}

stack_frames frames_of(const Module& module, OptimizationLevel level, std::string& why_none) {
  if (Triple(module.getTargetTriple()).getArch() != Triple::x86_64) {
    why_none = "the sizes of frames are known only on x86-64";
    return {};
  }
  SmallVector<char, 0> bitcode;
  BitcodeWriter writer(bitcode);
  writer.writeModule(module);
  writer.writeSymtab();
  writer.writeStrtab();
  LLVMContext context;
  Expected<std::unique_ptr<Module>> copy = parseBitcodeFile(
      MemoryBufferRef(StringRef(bitcode.data(), bitcode.size()), module.getModuleIdentifier()), context);
  if (!copy) {
    why_none = toString(copy.takeError());
    return {};
  }
  const std::unique_ptr<TargetMachine> target = target_for(**copy, level, why_none);
  if (target == nullptr) {
    return {};
  }
  stack_frames found;
  tapped_passes passes(found);
  passes.add(createTargetTransformInfoWrapperPass(target->getTargetIRAnalysis()));
  passes.add(new TargetLibraryInfoWrapperPass(Triple((*copy)->getTargetTriple())));
  raw_null_ostream nowhere;
  if (target->addPassesToEmitFile(passes, nowhere, nullptr, CodeGenFileType::Null)) {
    why_none = "there is no code generator for this target";
    return {};
  }
  passes.run(**copy);
  if (!passes.tapped()) {
    why_none = "this version of LLVM ends its code generation in a way that pirn's plugin does not know";
    return {};
  }
  return found;
}

}  // namespace pirn::plugin
