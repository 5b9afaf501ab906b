#include "stack_asm.hpp"

#include "llvm/ADT/SmallVector.h"

namespace pirn::plugin {

namespace {

using llvm::StringRef;

constexpr StringRef marker = "pirn-stack:";

bool names_sp(StringRef operand) {
  const StringRef name = operand.trim().ltrim('%').ltrim('$');
  return name == "rsp" || name == "esp" || name == "sp";
}

bool moves_sp_implicitly(StringRef mnemonic) {
  for (const StringRef each : {"push", "pop", "call", "enter", "leave", "ret", "iret", "syscall", "int"}) {
    if (mnemonic.starts_with(each) && !(each == "int" && mnemonic != "int")) {
      return each != "syscall";  // the kernel runs on a stack of its own
    }
  }
  return false;
}

}  // namespace

std::optional<std::uint64_t> stack_of_asm(StringRef code) {
  if (const auto at = code.find(marker); at != StringRef::npos) {
    std::uint64_t bytes = 0;
    StringRef rest = code.substr(at + marker.size()).ltrim();
    return rest.consumeInteger(10, bytes) ? std::nullopt : std::optional(bytes);
  }
  llvm::SmallVector<StringRef, 16> lines;
  code.split(lines, '\n');
  bool left = false;  // the sp is that of another stack, to be run on next
  for (const StringRef line : lines) {
    llvm::SmallVector<StringRef, 4> statements;
    line.split('#').first.split(statements, ';');
    for (StringRef statement : statements) {
      statement = statement.trim();
      while (statement.contains(':') && statement.split(':').first.find_first_of(" \t") == StringRef::npos) {
        statement = statement.split(':').second.trim();  // a label
      }
      if (statement.empty() || statement.starts_with(".")) {
        continue;
      }
      auto [mnemonic, operands] = statement.split(statement.contains('\t') && !statement.contains(' ') ? '\t' : ' ');
      if (moves_sp_implicitly(mnemonic)) {
        return std::nullopt;
      }
      if (mnemonic.starts_with("jmp")) {
        left = false;
        continue;
      }
      const StringRef last = operands.contains(',') ? operands.rsplit(',').second : operands;
      if (!names_sp(last)) {
        continue;
      }
      if (!mnemonic.starts_with("mov")) {
        return std::nullopt;
      }
      left = true;
    }
  }
  return left ? std::nullopt : std::optional<std::uint64_t>(0);
}

}  // namespace pirn::plugin
