// Replaces the calls of generators for their stacks by variables of the functions that make them.
#include "stack_generators.hpp"

#include <set>

#include "llvm/Analysis/ValueTracking.h"
#include "llvm/IR/Constants.h"
#include "llvm/IR/IRBuilder.h"
#include "stack_graph.hpp"
#include "stack_messages.hpp"

namespace pirn::plugin {

namespace {

using namespace llvm;

constexpr StringRef query_symbol = "pirn_generator_frame_needs_the_compiler_plugin";
constexpr std::uint64_t header_bytes = 16;  // a multiple of the alignment of a stack

/// The most that the unwinder and the functions of exceptions take, which landing pads of a body call. The first unwind
/// of a process takes about 5 KB.
constexpr StringRef facts_of_exceptions[] = {
    "bytes 6144 __cxa_*",
    "bytes 6144 _Unwind_*",
    "bytes 6144 __tls_get_addr",
    "bytes 6144 std::current_exception()",
    "bytes 6144 std::rethrow_exception(*",
    "bytes 6144 std::uncaught_exceptions()",
    "bytes 6144 std::exception_ptr::*",
    "bytes 6144 std::__exception_ptr::*",
    "bytes 6144 std::exception::*",
    "bytes 6144 std::bad_*",
    "bytes 6144 std::*_error::*",
    "noreturn std::terminate()",
    "noreturn __clang_call_terminate",
    "noreturn abort",
};

/// Returns whether code that `from` reaches by calls asks for the stack of a generator.
bool asks_for_stack(const stack_frames& frames, const stack_facts& facts, const std::string& from,
                    std::set<std::string>& seen) {
  if (from == query_symbol) {
    return true;
  }
  const auto at = frames.find(from);
  if (at == frames.end() || facts.fact_for(from) != nullptr || !seen.insert(from).second) {
    return false;
  }
  for (const stack_call& call : at->second.calls) {
    if (asks_for_stack(frames, facts, call.callee, seen)) {
      return true;
    }
  }
  return false;
}

/// Returns why the generator cannot have a stack in this function's frame; empty if it can.
std::string why_not_here(const generator_query& query) {
  if (query.entry == nullptr) {
    return "its body is not known here";
  }
  const auto* const object = dyn_cast<AllocaInst>(getUnderlyingObject(query.call->getArgOperand(2)));
  if (object == nullptr || !object->isStaticAlloca()) {
    return "it is not a variable of the function that makes it, as far as the optimizer sees (at -O0 it sees nothing)";
  }
  return "";
}

void refuse(const generator_query& query, const std::string& why) {
  report_unbounded(*query.call, "pirn: a generator with frame<> cannot have a stack: " + why);
  query.call->replaceAllUsesWith(PoisonValue::get(query.call->getType()));
  query.call->eraseFromParent();
}

void give_stack(const generator_query& query, std::uint64_t bytes) {
  constexpr std::uint64_t alignment = 16;
  BasicBlock& first = query.call->getFunction()->getEntryBlock();
  IRBuilder<> builder(&first, first.begin());
  const std::uint64_t size = alignTo(bytes, alignment);
  AllocaInst* const memory = builder.CreateAlloca(ArrayType::get(builder.getInt8Ty(), header_bytes + size));
  memory->setAlignment(Align(alignment));
  builder.CreateStore(builder.getInt64(0), memory);
  builder.SetInsertPoint(query.call);
  builder.CreateStore(builder.getInt64(size), builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), memory, 8));
  query.call->replaceAllUsesWith(memory);
  query.call->eraseFromParent();
}

/// Answers the query, or returns false if its body holds another generator that has no stack yet.
bool answer(const generator_query& query, const stack_frames& frames, const stack_facts& facts, stack_graph& graph) {
  if (const std::string why = why_not_here(query); !why.empty()) {
    refuse(query, why);
    return true;
  }
  const std::string name = query.entry->getName().str();
  std::set<std::string> seen;
  if (asks_for_stack(frames, facts, name, seen)) {
    return false;
  }
  const stack_bound& bound = graph.of(name);
  const auto* const more = dyn_cast<ConstantInt>(query.call->getArgOperand(1));
  if (!bound.bytes) {
    refuse(query, shown(bound.path.back().function) + ": " + bound.why_none + "; on the path " + shown(bound.path));
  } else if (more == nullptr) {
    refuse(query, "the size of its body is not known here");
  } else {
    remark_bound(*query.call, *query.entry, bound);
    give_stack(query, *bound.bytes + more->getZExtValue());
  }
  return true;
}

}  // namespace

std::vector<generator_query> generator_queries_in(Module& module) {
  std::vector<generator_query> found;
  const Function* const marker = module.getFunction(query_symbol);
  if (marker == nullptr) {
    return found;
  }
  for (const User* const user : marker->users()) {
    if (auto* const call = const_cast<CallInst*>(dyn_cast<CallInst>(user)); call != nullptr && call->arg_size() == 3) {
      found.push_back({call, dyn_cast<Function>(call->getArgOperand(0)->stripPointerCasts())});
    }
  }
  return found;
}

void give_generator_frames(Module& module, OptimizationLevel level, const stack_facts& facts,
                           std::optional<std::uint64_t> otherwise, function_ref<void(stack_frames&)> refine,
                           std::string& error) {
  stack_facts with_exceptions = facts;
  for (const StringRef each : facts_of_exceptions) {
    with_exceptions.add_unless_known(each);
  }
  for (auto open = generator_queries_in(module); !open.empty(); open = generator_queries_in(module)) {
    stack_frames frames = frames_of(module, level, error);
    if (!error.empty()) {
      return;
    }
    refine(frames);
    stack_graph graph(frames, with_exceptions, otherwise);
    bool any = false;
    for (const generator_query& each : open) {
      any = answer(each, frames, with_exceptions, graph) || any;
    }
    if (!any) {
      refuse(open.front(), "its body makes a generator whose body makes such a generator again");
    }
  }
}

}  // namespace pirn::plugin
