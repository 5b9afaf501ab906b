// Makes the name of a file from the path of a module.
#include "module_file.hpp"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

namespace pirn::plugin {

std::string file_name_for(llvm::StringRef module, llvm::StringRef ending) {
  constexpr std::size_t longest = 200;  // of 255, since an ending is added, and by some file systems more
  std::string name;
  for (const char each : module) {
    if (each == '/') {
      name += '+';
    } else if (llvm::isAlnum(each) || each == '.' || each == '-' || each == '_') {
      name += each;
    } else {
      name += '%' + llvm::utohexstr(static_cast<unsigned char>(each), false, 2);
    }
  }
  if (name.size() > longest) {
    name = llvm::utohexstr(llvm::xxh3_64bits(module)) + name.substr(name.size() - longest);
  }
  return name + ending.str();
}

}  // namespace pirn::plugin
