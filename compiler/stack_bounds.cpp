// Worst-case stack bounds. A program requests one by a call of `pirn_spawn_bounded_needs_the_compiler_plugin`, with the
// function that runs first on the stack as its argument. The call is replaced by the bound, or refused with the reason
// why there is no bound. Generators ask for a stack of that size (stack_generators.hpp). For separate compilation the
// plugin writes summaries, and reads them together with the files of assumptions.
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bitcode.hpp"
#include "llvm/ADT/DenseSet.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "module_file.hpp"
#include "passes.hpp"
#include "stack_copies.hpp"
#include "stack_facts.hpp"
#include "stack_frames.hpp"
#include "stack_generators.hpp"
#include "stack_graph.hpp"
#include "stack_messages.hpp"
#include "stack_options.hpp"
#include "stack_report.hpp"

namespace pirn::plugin {

namespace {

using namespace llvm;

constexpr StringRef query_symbol = "pirn_spawn_bounded_needs_the_compiler_plugin";

/// Modules whose compilation has begun in this process. These are all modules except those that a linker reads,
/// possibly in many threads.
class compilations {
 public:
  void begin(const Module& module) {
    const std::lock_guard<std::mutex> guard(mutex_);
    all_.insert(&module);
  }
  /// Returns whether it has begun, and forgets it.
  bool end(const Module& module) {
    const std::lock_guard<std::mutex> guard(mutex_);
    return all_.erase(&module);
  }

 private:
  std::mutex mutex_;
  DenseSet<const Module*> all_;
};
compilations& being_compiled() {
  static compilations all;
  return all;
}

/// Returns whether the module goes to a linker as bitcode, where all is known that is unknown here.
bool is_for_later(const Module& module, bool post_link) {
  return being_compiled().end(module) && !post_link && is_for_linker(module);
}

struct bound_query {
  CallInst* call;
  Function* entry;  ///< null if it is not a constant
};

std::vector<bound_query> bound_queries_in(Module& module) {
  std::vector<bound_query> found;
  const Function* const marker = module.getFunction(query_symbol);
  if (marker == nullptr) {
    return found;
  }
  for (const User* const user : marker->users()) {
    if (auto* const call = const_cast<CallInst*>(dyn_cast<CallInst>(user)); call != nullptr && call->arg_size() == 1) {
      found.push_back({call, dyn_cast<Function>(call->getArgOperand(0)->stripPointerCasts())});
    }
  }
  return found;
}

/// Returns the functions with an annotation in the source, [[clang::annotate("pirn-stack: WHAT")]], and what it says.
std::vector<std::pair<Function*, StringRef>> annotations_in(const Module& module) {
  std::vector<std::pair<Function*, StringRef>> found;
  const GlobalVariable* const all = module.getGlobalVariable("llvm.global.annotations");
  const auto* const entries = all != nullptr ? dyn_cast<ConstantArray>(all->getInitializer()) : nullptr;
  if (entries == nullptr) {
    return found;
  }
  for (const Use& each : entries->operands()) {
    const auto* const entry = cast<ConstantStruct>(each.get());
    auto* const function = dyn_cast<Function>(entry->getOperand(0)->stripPointerCasts());
    const auto* const text = dyn_cast<GlobalVariable>(entry->getOperand(1)->stripPointerCasts());
    const auto* const data = text != nullptr ? dyn_cast<ConstantDataArray>(text->getInitializer()) : nullptr;
    if (function == nullptr || data == nullptr || !data->isCString()) {
      continue;
    }
    StringRef what = data->getAsCString();
    if (what.consume_front("pirn-stack:")) {
      found.emplace_back(function, what.ltrim());
    }
  }
  return found;
}

/// Reads the annotations that say how much stack a function uses, BYTES or `noreturn`.
void read_annotations(const Module& module, stack_facts& facts) {
  for (const auto& [function, what] : annotations_in(module)) {
    std::uint64_t bytes = 0;
    const bool noreturn = what == "noreturn";
    if (noreturn || !what.getAsInteger(10, bytes)) {
      facts.annotate(function->getName(), {noreturn, bytes});
    }
  }
}

/// Makes functions that are annotated as `defined once` what the annotation says. The linker may otherwise choose
/// another definition, which cannot exist if no header defines it: of an explicit instantiation, or of a function that
/// is declared weak for programs without the library that defines it.
void make_defined_once(const Module& module) {
  for (const auto& [function, what] : annotations_in(module)) {
    if (what == "defined once" && function->hasWeakLinkage()) {
      function->setLinkage(GlobalValue::ExternalLinkage);
    }
  }
}

/// Resolves calls through pointers whose targets the IR knows, and refuses functions that may be replaced.
void refine(const Module& module, stack_frames& frames) {
  for (const Function& function : module) {
    const auto at = frames.find(function.getName().str());
    if (at == frames.end()) {
      continue;
    }
    stack_frame& frame = at->second;
    if (frame.why_none.empty() && may_be_replaced(function)) {
      frame.why_none = "other code may replace it when the program is linked or loaded (it is weak)";
    }
    if (!frame.indirect) {
      continue;
    }
    std::vector<stack_call> targets;
    bool all = true;
    bool any = false;
    for (const BasicBlock& block : function) {
      for (const Instruction& each : block) {
        const auto* const call = dyn_cast<CallBase>(&each);
        if (call == nullptr || !call->isIndirectCall()) {
          continue;
        }
        any = true;
        const MDNode* const known = call->getMetadata(LLVMContext::MD_callees);
        all = all && known != nullptr;
        for (unsigned i = 0; known != nullptr && i < known->getNumOperands(); ++i) {
          targets.push_back(
              {mdconst::extract<Function>(known->getOperand(i))->getName().str(), frame.indirect_is_last});
        }
      }
    }
    if (any && all) {
      frame.indirect = false;
      frame.calls.insert(frame.calls.end(), targets.begin(), targets.end());
    }
  }
}

/// Returns the frames for the summary: names are unique across files, and calls through pointers are resolved.
stack_frames for_others(const Module& module, const stack_frames& frames, const stack_facts& facts) {
  const auto name = [&](const std::string& of) {
    const Function* const function = module.getFunction(of);
    return function != nullptr && function->hasLocalLinkage() ? of + "@" + module.getSourceFileName() : of;
  };
  stack_frames found;
  for (const auto& [function, frame] : frames) {
    stack_frame& copy = found[name(function)] = frame;
    if (const stack_facts::fact* const fact = facts.fact_for(function)) {
      copy = {};
      copy.bytes = fact->bytes;
      continue;
    }
    for (stack_call& call : copy.calls) {
      call.callee = name(call.callee);
    }
    if (copy.indirect) {
      const std::vector<std::string>* const targets = facts.targets_in(function);
      if (targets == nullptr) {
        copy.why_none = "it calls through a pointer, and nothing says what that may point to";
        continue;
      }
      for (const std::string& each : *targets) {
        copy.calls.push_back({name(each), copy.indirect_is_last});
      }
    }
  }
  return found;
}

class stack_bounds : public PassInfoMixin<stack_bounds> {
 public:
  stack_bounds(OptimizationLevel level, bool post_link) : level_(level), post_link_(post_link) {}
  static bool isRequired() { return true; }

  PreservedAnalyses run(Module& module, ModuleAnalysisManager& /*analyses*/) {
    const bool later = is_for_later(module, post_link_);
    const std::vector<bound_query> queries = bound_queries_in(module);
    const std::vector<generator_query> generators = generator_queries_in(module);
    const stack_options options = stack_options::given();
    if (later || (queries.empty() && generators.empty() && options.report.empty() && options.summaries.empty())) {
      return PreservedAnalyses::all();
    }
    stack_facts facts;
    std::string error;
    for (const std::string& each : options.assumptions) {
      if (!facts.read(each, error)) {
        module.getContext().emitError("pirn: " + error);
        return PreservedAnalyses::all();
      }
    }
    make_defined_once(module);
    std::vector<Function*> roots;
    for (const bound_query& each : queries) {
      if (each.entry != nullptr) {
        roots.push_back(each.entry);
      }
    }
    for (const generator_query& each : generators) {
      if (each.entry != nullptr) {
        roots.push_back(each.entry);
      }
    }
    if (!options.summaries.empty()) {
      for (Function& each : module) {
        if (!each.isDeclaration() && each.hasExternalLinkage()) {
          roots.push_back(&each);
        }
      }
    }
    read_annotations(module, facts);
    const bool copied = keep_to_own_copies(
        roots, [&](const Function& function) { return facts.fact_for(function.getName()) != nullptr; });
    facts.annotate(query_symbol, {});  // no call of it will be left
    const auto amend = [&](stack_frames& frames) { refine(module, frames); };
    give_generator_frames(module, level_, facts, options.otherwise, amend, error);
    stack_frames frames;
    if (error.empty() && (!queries.empty() || !options.report.empty() || !options.summaries.empty())) {
      frames = frames_of(module, level_, error);
    }
    if (!error.empty()) {
      module.getContext().emitError("pirn: no stack bounds: " + error);
      return PreservedAnalyses::all();
    }
    refine(module, frames);
    stack_graph graph(frames, facts, options.otherwise);
    stack_report report;
    for (const bound_query& each : bound_queries_in(module)) {
      answer(each, graph, report);
    }
    if (!options.report.empty()) {
      for (const auto& [function, frame] : frames) {
        report.add(function, frame, graph.of(function));
      }
      report.append_to(options.report, module);
    }
    if (!options.summaries.empty()) {
      write_summary(options.summaries, module, summary_text(for_others(module, frames, facts)));
    }
    return queries.empty() && generators.empty() && !copied ? PreservedAnalyses::all() : PreservedAnalyses::none();
  }

 private:
  static void answer(const bound_query& query, stack_graph& graph, stack_report& report) {
    Value* value = ConstantInt::get(query.call->getType(), 0);
    if (query.entry == nullptr) {
      report_unbounded(*query.call, "pirn: no stack bound: the function that will run on the stack is not known here");
    } else {
      const std::string name = query.entry->getName().str();
      const stack_bound& bound = graph.of(name);
      report.add_entry(name);
      if (bound.bytes) {
        value = ConstantInt::get(query.call->getType(), *bound.bytes);
        remark_bound(*query.call, *query.entry, bound);
      } else {
        report_unbounded(*query.call, "pirn: a fiber with this body cannot have a bounded stack: " +
                                          shown(bound.path.back().function) + ": " + bound.why_none + "; on the path " +
                                          shown(bound.path));
      }
    }
    query.call->replaceAllUsesWith(value);
    query.call->eraseFromParent();
  }

  static void write_summary(const std::string& folder, const Module& module, const std::string& text) {
    SmallString<256> path(folder);
    sys::path::append(path, file_name_for(module.getSourceFileName(), ".stack"));
    std::error_code failure = sys::fs::create_directories(folder);
    if (!failure) {
      raw_fd_ostream out(path, failure);
      if (!failure) {
        out << text;
        return;
      }
    }
    module.getContext().emitError("pirn: cannot write " + path + ": " + failure.message());
  }

  OptimizationLevel level_;
  bool post_link_;
};

/// Notes which modules are compiled from source in this process.
class note_compilation : public PassInfoMixin<note_compilation> {
 public:
  static bool isRequired() { return true; }
  PreservedAnalyses run(Module& module, ModuleAnalysisManager& /*analyses*/) {
    being_compiled().begin(module);
    return PreservedAnalyses::all();
  }
};

}  // namespace

void register_stack_bounds(llvm::PassBuilder& builder) {
  const auto add = [](ModulePassManager& passes, OptimizationLevel level, auto... /*phase*/) {
    passes.addPass(stack_bounds(level, false));
  };
  // The pass runs behind the passes that instrument code. The compiler registers these for the end after it has loaded
  // plugins, but before the pipeline starts. A linker that continues with a module in the middle has no such start.
  const auto compiles = std::make_shared<bool>(false);
  builder.registerPipelineStartEPCallback([compiles, add, &builder](ModulePassManager& passes, OptimizationLevel) {
    passes.addPass(note_compilation());
    if (!std::exchange(*compiles, true)) {
      builder.registerOptimizerLastEPCallback(add);
    }
  });
  builder.registerOptimizerLastEPCallback(
      [compiles, add](ModulePassManager& passes, OptimizationLevel level, auto... /*phase*/) {
        if (!*compiles) {
          add(passes, level);
        }
      });
  builder.registerFullLinkTimeOptimizationLastEPCallback(
      [](ModulePassManager& passes, OptimizationLevel level) { passes.addPass(stack_bounds(level, true)); });
  builder.registerPipelineParsingCallback(
      [](StringRef name, ModulePassManager& passes, ArrayRef<PassBuilder::PipelineElement>) {
        if (name != "pirn-stack-bounds") {
          return false;
        }
        passes.addPass(stack_bounds(OptimizationLevel::O2, true));
        return true;
      });
}

}  // namespace pirn::plugin
