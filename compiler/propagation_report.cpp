// Writes decisions about functions as remarks and as JSON.
#include "propagation_report.hpp"

#include "llvm/Analysis/OptimizationRemarkEmitter.h"
#include "llvm/IR/DebugInfoMetadata.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "module_file.hpp"
#include "propagation_convention.hpp"

namespace pirn::plugin {
namespace {

constexpr const char* remark_pass = "pirn";

std::string rounded(double number) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::format("%.3g", number);
  return text;
}

}  // namespace

void emit_remarks(const std::vector<decision>& decisions) {
  for (const decision& each : decisions) {
    llvm::OptimizationRemarkEmitter remarks(each.function);
    const llvm::DiagnosticLocation where(each.function->getSubprogram());
    const llvm::BasicBlock* const block = &each.function->getEntryBlock();
    if (each.propagated) {
      remarks.emit([&] {
        return llvm::OptimizationRemark(remark_pass, "Propagated", where, block)
               << "'" << readable(*each.function) << "' no longer preserves registers; switches per call: "
               << llvm::ore::NV("Switches", rounded(each.switches));
      });
    } else {
      remarks.emit([&] {
        return llvm::OptimizationRemarkMissed(remark_pass, "Kept", where, block)
               << "'" << readable(*each.function)
               << "' still preserves registers, though it may switch: " << llvm::ore::NV("Reason", each.reason);
      });
    }
  }
}

void write_report(const llvm::Module& module, const std::vector<decision>& decisions, llvm::StringRef path) {
  llvm::SmallString<256> file(path);
  std::error_code error;
  if (!path.ends_with(".json")) {
    error = llvm::sys::fs::create_directories(path);
    llvm::sys::path::append(file, file_name_for(module.getModuleIdentifier(), ".json"));
  }
  if (!error) {
    llvm::raw_fd_ostream out(file, error);
    if (!error) {
      llvm::json::OStream json(out, 2);
      json.object([&] {
        json.attribute("module", module.getModuleIdentifier());
        json.attributeArray("functions", [&] {
          for (const decision& each : decisions) {
            json.object([&] {
              json.attribute("function", readable(*each.function));
              json.attribute("symbol", each.function->getName());
              if (const llvm::DISubprogram* const where = each.function->getSubprogram()) {
                json.attribute("file", where->getFilename());
                json.attribute("line", where->getLine());
              }
              json.attribute("propagated", each.propagated);
              json.attribute("switches_per_call", each.switches);
              if (!each.propagated) {
                json.attribute("reason", each.reason);
              }
            });
          }
        });
      });
      out << '\n';
      out.close();
      error = out.error();
      out.clear_error();
    }
  }
  if (error) {
    module.getContext().emitError("pirn: cannot write the report " + file.str() + ": " + error.message());
  }
}

}  // namespace pirn::plugin
