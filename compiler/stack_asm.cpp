// Reads the text of inline asm for its use of the stack.
#include "stack_asm.hpp"

#include <string>
#include <tuple>
#include <utility>

#include "llvm/ADT/SmallVector.h"

namespace pirn::plugin {

namespace {

using llvm::StringRef;

constexpr StringRef fact_marker = "pirn-stack:";

bool names_sp(StringRef operand) {
  const StringRef name = operand.trim().ltrim('%').ltrim('$');
  return name == "rsp" || name == "esp" || name == "sp";
}

bool moves_sp_implicitly(StringRef mnemonic) {
  for (const StringRef each : {"push", "pop", "call", "enter", "leave", "ret", "iret", "syscall", "int"}) {
    if (mnemonic.starts_with(each) && !(each == "int" && mnemonic != "int")) {
      return each != "syscall";  // the kernel runs on another stack
    }
  }
  return false;
}

/// Returns whether the word is a prefix, which may stand before a mnemonic.
bool is_prefix(StringRef word) {
  for (const StringRef each : {"notrack", "bnd", "lock", "data16", "addr32", "cs", "ds", "es", "fs", "gs", "ss"}) {
    if (word == each) {
      return true;
    }
  }
  return word.starts_with("rep") || word.starts_with("rex");
}

std::pair<StringRef, StringRef> first_word(StringRef statement) {
  const auto end = statement.find_first_of(" \t");
  return {statement.take_front(end), end == StringRef::npos ? StringRef() : statement.substr(end).trim()};
}

/// Returns the code in lower case, with one of the alternatives for the two syntaxes, {like|this}.
std::string in_syntax(StringRef code, bool intel) {
  std::string text;
  int alternative = -1;
  for (std::size_t at = 0; at < code.size(); ++at) {
    const char next = code[at] == '$' && at + 1 < code.size() ? code[++at] : '\0';
    if (next == '(') {
      alternative = 0;
    } else if (next == ')') {
      alternative = -1;
    } else if (next == '|') {
      ++alternative;
    } else if (alternative == -1 || alternative == (intel ? 1 : 0)) {
      text += next == '\0' ? std::string(1, code[at]) : std::string{'$', next};
    }
  }
  return llvm::StringRef(text).lower();
}

/// Returns whether the instruction writes the sp: into either operand if it swaps, else into the destination.
bool writes_sp(StringRef operands, bool intel, bool swaps) {
  const StringRef first = operands.split(',').first;
  const StringRef last = operands.contains(',') ? operands.rsplit(',').second : operands;
  return swaps ? names_sp(first) || names_sp(last) : names_sp(intel ? first : last);
}

}  // namespace

std::optional<std::uint64_t> stack_of_asm(StringRef written, asm_kind kind) {
  const std::string text = in_syntax(written, kind.intel);
  const StringRef code = text;
  if (const auto at = code.find(fact_marker); at != StringRef::npos) {
    std::uint64_t bytes = 0;
    StringRef rest = code.substr(at + fact_marker.size()).ltrim();
    return rest.consumeInteger(10, bytes) ? std::nullopt : std::optional(bytes);
  }
  if (kind.sets_sp) {
    return std::nullopt;
  }
  llvm::SmallVector<StringRef, 16> lines;
  code.split(lines, '\n');
  bool left = false;  // the sp is that of another stack, on which code runs next
  for (const StringRef line : lines) {
    llvm::SmallVector<StringRef, 4> statements;
    line.split('#').first.split(statements, ';');
    for (StringRef statement : statements) {
      statement = statement.trim();
      while (statement.contains(':') && statement.split(':').first.find_first_of(" \t") == StringRef::npos) {
        statement = statement.split(':').second.trim();  // a label
      }
      if (statement.starts_with(".intel_syntax") || statement.starts_with(".att_syntax")) {
        kind.intel = statement.starts_with(".intel");
      }
      if (statement.empty() || statement.starts_with(".")) {
        continue;
      }
      auto [mnemonic, operands] = first_word(statement);
      while (is_prefix(mnemonic)) {
        std::tie(mnemonic, operands) = first_word(operands);
      }
      if (moves_sp_implicitly(mnemonic)) {
        return std::nullopt;
      }
      if (mnemonic.starts_with("jmp")) {
        left = false;
        continue;
      }
      if (!writes_sp(operands, kind.intel, mnemonic.starts_with("xchg") || mnemonic.starts_with("xadd"))) {
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
