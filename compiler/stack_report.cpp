// Writes stack bounds as lines of JSON.
#include "stack_report.hpp"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

namespace pirn::plugin {

void stack_report::add(const std::string& function, const stack_frame& frame, const stack_bound& bound) {
  llvm::json::Object row{{"function", shown(function)}, {"symbol", function}, {"entry", entries_.contains(function)}};
  if (!frame.file.empty()) {
    row["where"] = frame.file;
  }
  if (frame.why_none.empty()) {
    row["frame"] = static_cast<std::int64_t>(frame.bytes);
  }
  if (bound.bytes) {
    row["bound"] = static_cast<std::int64_t>(*bound.bytes);
  } else {
    row["refused"] = bound.why_none;
  }
  llvm::json::Array path;
  for (const stack_step& each : bound.path) {
    path.push_back(
        llvm::json::Object{{"function", shown(each.function)}, {"bytes", static_cast<std::int64_t>(each.bytes)}});
  }
  row["path"] = std::move(path);
  rows_.push_back(std::move(row));
}

void stack_report::append_to(const std::string& file, const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream lines(text);
  for (llvm::json::Object& row : rows_) {
    row["file"] = module.getSourceFileName();
    lines << llvm::json::Value(std::move(row)) << '\n';
  }
  // In one write, so that compilers which run at the same time do not cut each other's lines.
  std::error_code failure;
  llvm::raw_fd_ostream out(file, failure, llvm::sys::fs::OF_Append);
  if (failure) {
    module.getContext().emitError("pirn: cannot write " + file + ": " + failure.message());
    return;
  }
  out.SetBufferSize(text.size() + 1);
  out << text;
}

}  // namespace pirn::plugin
