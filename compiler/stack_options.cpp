// Reads the options of stack bounds from the command line and the environment.
#include "stack_options.hpp"

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/Process.h"

namespace pirn::plugin {

namespace {

using namespace llvm;

cl::list<std::string> assumptions("pirn-stack-assumptions", cl::value_desc("file or folder"),
                                  cl::desc("stack use of functions whose code is elsewhere"));
cl::opt<std::string> default_bytes("pirn-stack-default", cl::value_desc("bytes"),
                                   cl::desc("stack use to assume for functions of which nothing is known"));
cl::opt<std::string> report("pirn-stack-report", cl::value_desc("file"),
                            cl::desc("append the bounds to this file, as JSON"));
cl::opt<std::string> summaries("pirn-stack-summaries", cl::value_desc("folder"),
                               cl::desc("write the facts about this file that others need"));

std::string given_or(const std::string& option, const char* variable) {
  return option.empty() ? sys::Process::GetEnv(variable).value_or("") : option;
}

}  // namespace

stack_options stack_options::given() {
  stack_options options;
  options.assumptions.assign(pirn::plugin::assumptions.begin(), pirn::plugin::assumptions.end());
  const std::string more = given_or("", "PIRN_STACK_ASSUMPTIONS");
  SmallVector<StringRef, 4> parts;
  StringRef(more).split(parts, ':', -1, false);
  for (const StringRef each : parts) {
    options.assumptions.push_back(each.str());
  }
  if (const std::string bytes = given_or(default_bytes, "PIRN_STACK_DEFAULT"); !bytes.empty()) {
    std::uint64_t value = 0;
    if (StringRef(bytes).getAsInteger(10, value)) {
      report_fatal_error(Twine("pirn: -pirn-stack-default is not a number: ") + bytes, false);
    }
    options.otherwise = value;
  }
  options.report = given_or(pirn::plugin::report, "PIRN_STACK_REPORT");
  options.summaries = given_or(pirn::plugin::summaries, "PIRN_STACK_SUMMARIES");
  return options;
}

}  // namespace pirn::plugin
