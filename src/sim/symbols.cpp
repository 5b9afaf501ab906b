// Finds the functions and lines of code addresses, and makes their names short.
#include "sim/symbols.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string_view>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

namespace {

/// Returns where the template arguments of a mangled name end that begin at `at`; null if they have a form that is not
/// expected here.
const char* behind_template_arguments(const char* at) {
  int depth = 0;
  while (*at != '\0') {
    const char c = *at;
    if (c >= '0' && c <= '9') {  // a name, by its length
      char* end = nullptr;
      const unsigned long length = std::strtoul(at, &end, 10);
      if (length > std::strlen(end)) {
        return nullptr;
      }
      at = end + length;
      continue;
    }
    if (c == 'S' || c == 'T') {  // something that was named before, or a parameter
      ++at;
      at += std::strspn(at, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
      at += *at != '\0' ? 1 : 0;
      continue;
    }
    if (c == 'L' && at[1] >= 'a' && at[1] <= 'z') {  // a value
      at = std::strchr(at, 'E');
      if (at == nullptr) {
        return nullptr;
      }
      ++at;
      continue;
    }
    depth += std::strchr("INLXFJ", c) != nullptr ? 1 : c == 'E' ? -1 : 0;
    ++at;
    if (depth == 0) {
      return at;
    }
  }
  return nullptr;
}

/// Returns the names in a mangled one without template arguments, for names that the runtime of an older compiler
/// cannot read.
std::string names_in(const char* mangled) {
  std::string text;
  const char* at = mangled + std::strspn(mangled, "_ZNK");
  for (;;) {
    char* end = nullptr;
    const unsigned long length = std::strtoul(at, &end, 10);
    if (end == at || length == 0 || length > std::strlen(end)) {
      return text;
    }
    text += (text.empty() ? "" : "::") + std::string(end, length);
    at = end + length;
    if (const char* const behind = *at == 'I' ? behind_template_arguments(at) : nullptr; behind != nullptr) {
      at = behind;
    }
  }
}

std::string readable(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status), std::free);
  if (text) {
    return text.get();
  }
  return std::strncmp(name, "_Z", 2) == 0 ? names_in(name) : name;
}

/// Returns a name without template arguments, parameters and inline namespaces.
std::string shortened(std::string name) {
  for (std::size_t at; (at = name.find(" const::")) != std::string::npos;) {
    name.erase(at, 6);
  }
  std::string result;
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool is_operator = name.compare(i, 8, "operator") == 0;
    if (is_operator && depth == 0) {
      result += "operator";
      i += 7;
      continue;
    }
    const char c = name[i];
    if (c == '<' || c == '(') {
      ++depth;
      if (name.compare(i, 21, "(anonymous namespace)") == 0 && depth == 1) {
        i += 20;
        --depth;
        i += name.compare(i + 1, 2, "::") == 0 ? 2 : 0;
      }
    } else if (c == '>' || c == ')') {
      depth -= depth > 0 ? 1 : 0;
    } else if (depth == 0) {
      result += c;
    }
  }
  constexpr std::string_view abi = PIRN_ABI_NAME "::";
  for (std::size_t at; (at = result.find(abi)) != std::string::npos;) {
    result.erase(at, abi.size());
  }
  // Removes the return type, the suffixes behind the parameters, and the operator of a lambda.
  for (const char* suffix : {" const", " noexcept"}) {
    if (result.ends_with(suffix)) {
      result.erase(result.size() - std::strlen(suffix));
    }
  }
  for (std::size_t at; (at = result.find("::operator")) != std::string::npos;) {
    result.erase(at, std::strlen("::operator"));
  }
  if (const std::size_t space = result.rfind(' '); space != std::string::npos) {
    result.erase(0, space + 1);
  }
  return result.empty() ? name : result;
}

/// Returns whether a shared library is one that every program has. With debug information for such libraries, a caller
/// of abort would otherwise seem to be in raise.c.
bool of_the_system(const std::string& file) {
  const std::string name = file.substr(file.rfind('/') + 1);
  return std::ranges::any_of(std::initializer_list<const char*>{"libc.", "libc-", "libm.", "libstdc++", "libc++",
                                                                "libgcc_s", "libunwind", "ld-linux"},
                             [&](const char* each) { return name.starts_with(each); });
}

frame frame_of(const std::string& file, const std::string& function, const std::string& line) {
  frame made;
  const std::string full = readable(function.c_str());
  // Without full debug information an inlined function has a short name only; its file shows where it belongs.
  const bool header = line.find("/include/pirn/") != std::string::npos;
  made.ours =
      header || (full.find("pirn::" PIRN_ABI_NAME) != std::string::npos &&
                 (full.starts_with("pirn::") || full.substr(0, full.find('(')).find(" pirn::") != std::string::npos));
  made.library = of_the_system(file) || full.starts_with("std::") || full.starts_with("__") ||
                 full.starts_with("_Unwind") || line.find("/include/c++/") != std::string::npos ||
                 full.starts_with("decltype") || full.substr(0, full.find('(')).find(" std::") != std::string::npos;
  // The replacements of the C library's functions.
  static constexpr std::string_view replaced[] = {"exit", "_exit", "_Exit", "quick_exit", "pthread_create"};
  made.library |= std::ranges::find(replaced, full) != std::end(replaced) || full.starts_with("operator new") ||
                  full.starts_with("operator delete") || line.find("/src/sim/") != std::string::npos;
  made.function = shortened(full);
  // A class of sync is one template for two domains; programs know it by another name.
  if (constexpr std::string_view generic = "pirn::detail::basic_"; made.function.starts_with(generic)) {
    made.function.replace(0, generic.size(),
                          function.find("local_domain") != std::string::npos ? "pirn::local::" : "pirn::");
  }
  made.inside =
      made.function.starts_with("pirn::platform::") || made.function.starts_with("pirn::sim::var") ||
      made.function.starts_with("pirn::sim::detail::") || made.function.starts_with("pirn::arch::") ||
      (header && (line.find("/pirn/detail/") != std::string::npos || line.find("/pirn/sim/") != std::string::npos));
  const std::size_t slash = line.rfind('/');
  made.line = slash == std::string::npos ? line : line.substr(slash + 1);
  if (made.line.starts_with("??")) {
    made.line.clear();
  }
  if (const std::size_t note = made.line.find(" ("); note != std::string::npos) {
    made.line.resize(note);
  }
  return made;
}

struct module_place {
  std::string file;
  std::uintptr_t offset;
};

bool find_module(std::uintptr_t address, module_place& into) {
  Dl_info info;
  link_map* map = nullptr;
  if (dladdr1(reinterpret_cast<void*>(address), &info, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP) == 0 ||
      map == nullptr) {
    return false;
  }
  into.file = map->l_name != nullptr && *map->l_name != '\0' ? map->l_name : "/proc/self/exe";
  if (into.file == "/proc/self/exe") {
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path);
    if (length > 0 && length < static_cast<ssize_t>(sizeof path)) {
      into.file.assign(path, static_cast<std::size_t>(length));
    }
  }
  into.offset = address - map->l_addr;
  return true;
}

std::string symbolizer() {
  for (const char* const name : {"llvm-symbolizer", "llvm-symbolizer-22", "llvm-symbolizer-19", "addr2line"}) {
    const std::string probe = "command -v " + std::string(name) + " >/dev/null 2>&1";
    // NOLINTNEXTLINE(cert-env33-c, concurrency-mt-unsafe, bugprone-command-processor): a test asks about itself
    if (std::system(probe.c_str()) == 0) {
      return name;
    }
  }
  return {};
}

}  // namespace

symbols::symbols(std::vector<std::uintptr_t> addresses) {
  std::ranges::sort(addresses);
  addresses.erase(std::ranges::unique(addresses).begin(), addresses.end());
  std::map<std::string, std::vector<std::pair<std::uintptr_t, std::uintptr_t>>> by_file;  // address, offset
  for (const std::uintptr_t each : addresses) {
    module_place found;
    if (each != 0 && find_module(each - 1, found)) {
      by_file[found.file].emplace_back(each, found.offset);
    }
  }
  const std::string tool = symbolizer();
  for (const auto& [file, places] : by_file) {
    if (tool.empty() || file.find('\'') != std::string::npos) {
      continue;
    }
    for (std::size_t begin = 0; begin < places.size(); begin += 500) {
      const std::size_t end = std::min(begin + 500, places.size());
      const bool llvm = tool.starts_with("llvm");
      std::string command = tool;
      command += llvm ? " --inlines --functions=linkage --demangle --output-style=GNU -e '" : " -i -f -a -e '";
      command += file;
      command += "'";
      if (llvm) {
        command += " --print-address";
      }
      char number[32];
      for (std::size_t i = begin; i < end; ++i) {
        static_cast<void>(std::snprintf(number, sizeof number, " 0x%lx", static_cast<unsigned long>(places[i].second)));
        command += number;
      }
      command += " 2>/dev/null";
      // NOLINTNEXTLINE(bugprone-command-processor): a test asks about itself
      const std::unique_ptr<FILE, int (*)(FILE*)> out(popen(command.c_str(), "r"), &pclose);
      if (!out) {
        continue;
      }
      char line[4096];
      std::size_t at = begin;
      bool first = true;
      std::string function;
      while (std::fgets(line, sizeof line, out.get()) != nullptr) {
        std::string text(line);
        text.resize(std::strcspn(text.c_str(), "\n"));
        if (text.starts_with("0x") && text.find_first_not_of("0123456789abcdef", 2) == std::string::npos) {
          at = first ? begin : at + 1;
          first = false;
          function.clear();
        } else if (function.empty()) {
          function = text;
        } else {
          if (at < end && function != "??") {
            known_[places[at].first].push_back(frame_of(file, function, text));
          }
          function.clear();
        }
      }
    }
  }
  for (const std::uintptr_t each : addresses) {
    Dl_info info;
    if (known_[each].empty() && each != 0 && dladdr(reinterpret_cast<void*>(each - 1), &info) != 0 &&
        info.dli_sname != nullptr) {
      known_[each].push_back(frame_of(info.dli_fname, info.dli_sname, ""));
    }
  }
}

const std::vector<frame>& symbols::at(std::uintptr_t address) const {
  static const std::vector<frame> none;
  const auto found = known_.find(address);
  return found != known_.end() ? found->second : none;
}

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
