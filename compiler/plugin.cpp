// The entry point by which the compiler finds the passes.
#include "passes.hpp"

#if __has_include("llvm/Plugins/PassPlugin.h")
#include "llvm/Plugins/PassPlugin.h"
#else
#include "llvm/Passes/PassPlugin.h"
#endif

extern "C" __attribute__((visibility("default"))) llvm::PassPluginLibraryInfo llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "pirn", "1", [](llvm::PassBuilder& builder) {
            pirn::plugin::register_thread_locals(builder);
            pirn::plugin::register_propagation(builder);
            pirn::plugin::register_stack_bounds(builder);
          }};
}
