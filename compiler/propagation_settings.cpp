// Reads the options of propagation from the command line, and from the metadata of a module.
#include "propagation_settings.hpp"

#include "llvm/IR/Metadata.h"
#include "llvm/Support/CommandLine.h"

namespace pirn::plugin {
namespace {

// A linker has parsed its command line before it loads the plugin, so options do not reach it: it reads this metadata.
constexpr const char* remembered_as = "pirn.propagate";

llvm::cl::opt<bool> automatic_option("pirn-propagate", llvm::cl::init(true),
                                     llvm::cl::desc("propagate the convention that preserves no register to callers"));
llvm::cl::opt<std::string> list_option("pirn-list", llvm::cl::value_desc("file"),
                                       llvm::cl::desc("functions that have the convention in all files"));
llvm::cl::opt<std::string> report_option("pirn-report", llvm::cl::value_desc("folder or file.json"),
                                         llvm::cl::desc("where to write the decision about each function"));

}  // namespace

propagation_settings settings_of_command() { return {automatic_option, list_option, report_option}; }

void remember(llvm::Module& module, const propagation_settings& settings) {
  llvm::LLVMContext& context = module.getContext();
  module.getOrInsertNamedMetadata(remembered_as)
      ->addOperand(llvm::MDNode::get(context, {llvm::MDString::get(context, settings.automatic ? "automatic" : "off"),
                                               llvm::MDString::get(context, settings.report)}));
}

propagation_settings settings_of(const llvm::Module& module) {
  propagation_settings settings = settings_of_command();
  const llvm::NamedMDNode* const remembered = module.getNamedMetadata(remembered_as);
  if (remembered == nullptr) {
    return settings;
  }
  // A linked module has the settings of all its files. One file with "off" decides for all, since calls cross files.
  for (const llvm::MDNode* each : remembered->operands()) {
    settings.automatic &= llvm::cast<llvm::MDString>(each->getOperand(0))->getString() == "automatic";
    if (settings.report.empty()) {
      settings.report = llvm::cast<llvm::MDString>(each->getOperand(1))->getString();
    }
  }
  return settings;
}

}  // namespace pirn::plugin
