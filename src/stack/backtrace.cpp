// Walks the stack of the calling thread in a signal handler, and finds the names of the functions in the ELF files that
// are mapped.
#include "stack/backtrace.hpp"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <cstring>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

// ---- message ------------------------------------------------------------------------------------------------------

void message::put(char c) noexcept {
  if (used_ == sizeof buffer_) {
    flush();
  }
  buffer_[used_++] = c;
}

message& message::text(const char* string) noexcept {
  while (*string != '\0') {
    put(*string++);
  }
  return *this;
}

message& message::number(std::uintptr_t value) noexcept {
  char digits[24];
  unsigned count = 0;
  do {
    digits[count++] = static_cast<char>('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (count != 0) {
    put(digits[--count]);
  }
  return *this;
}

message& message::address(std::uintptr_t value) noexcept {
  text("0x");
  unsigned shift = sizeof value * 8;
  bool started = false;
  while (shift != 0) {
    shift -= 4;
    const auto digit = value >> shift & 15;
    started = started || digit != 0 || shift == 0;
    if (started) {
      put("0123456789abcdef"[digit]);
    }
  }
  return *this;
}

void message::flush() noexcept {
  std::size_t done = 0;
  while (done < used_) {
    const ssize_t wrote = write(file_, buffer_ + done, used_ - done);
    if (wrote <= 0) {
      break;
    }
    done += static_cast<std::size_t>(wrote);
  }
  used_ = 0;
}

// ---- registers ----------------------------------------------------------------------------------------------------

registers registers_of(const void* context) noexcept {
  const auto& saved = static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return {static_cast<std::uintptr_t>(saved.gregs[REG_RIP]), static_cast<std::uintptr_t>(saved.gregs[REG_RSP])};
#elif defined(__i386__)
  return {static_cast<std::uintptr_t>(saved.gregs[REG_EIP]), static_cast<std::uintptr_t>(saved.gregs[REG_ESP])};
#elif defined(__aarch64__)
  return {saved.pc, saved.sp};
#elif defined(__riscv)
  return {saved.__gregs[REG_PC], saved.__gregs[REG_SP]};
#elif defined(__powerpc64__)
  constexpr int r1 = 1, nip = 32;  // as in struct pt_regs
  return {saved.gp_regs[nip], saved.gp_regs[r1]};
#else
#error "pirn: return the pc and sp of this instruction set's signal context here"
#endif
}

// ---- collecting ---------------------------------------------------------------------------------------------------

struct backtrace_walk {
  backtrace* into;
  std::uintptr_t pc;
  bool started;

  static _Unwind_Reason_Code step(_Unwind_Context* context, void* raw) {
    auto* const walk = static_cast<backtrace_walk*>(raw);
    int before_instruction = 0;
    const std::uintptr_t pc = _Unwind_GetIPInfo(context, &before_instruction);
    if (pc == 0) {
      return _URC_END_OF_STACK;
    }
    walk->started = walk->started || pc == walk->pc;
    if (walk->started) {
      walk->into->add(pc, before_instruction != 0 ? pc : pc - 1);
    }
    return _URC_NO_REASON;
  }
};

void backtrace::collect(std::uintptr_t pc) noexcept {
  clear();
  backtrace_walk walk{this, pc, false};
  _Unwind_Backtrace(&backtrace_walk::step, &walk);
  if (count_ == 0) {
    add(pc, pc);
  }
}

void backtrace::add(std::uintptr_t pc, std::uintptr_t lookup) noexcept {
  const auto slot = [](unsigned n) { return n < innermost ? n : innermost + (n - innermost) % outermost; };
  if (count_ != 0 && frames_[slot(count_ - 1)].pc == pc) {
    ++frames_[slot(count_ - 1)].times;
    return;
  }
  frame& added = frames_[slot(count_++)];
  added.pc = pc;
  added.lookup = lookup;
  added.file_offset = 0;
  added.address = 0;
  added.in_function = 0;
  added.times = 1;
  added.module[0] = '\0';
  added.function[0] = '\0';
}

// ---- naming -------------------------------------------------------------------------------------------------------

namespace {
void copy_text(char* to, std::size_t size, const char* from) noexcept {
  std::size_t i = 0;
  for (; i + 1 < size && from[i] != '\0'; ++i) {
    to[i] = from[i];
  }
  to[i] = '\0';
}

std::uintptr_t parse_hex(const char*& at) noexcept {
  std::uintptr_t value = 0;
  for (;; ++at) {
    const char c = *at;
    if (c >= '0' && c <= '9') {
      value = value * 16 + static_cast<std::uintptr_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      value = value * 16 + static_cast<std::uintptr_t>(c - 'a' + 10);
    } else {
      return value;
    }
  }
}

template <class T>
bool read_at(int file, std::uintptr_t offset, T* out, std::size_t count = 1) noexcept {
  const std::size_t wanted = sizeof(T) * count;
  return pread(file, out, wanted, static_cast<off_t>(offset)) == static_cast<ssize_t>(wanted);
}
}  // namespace

void backtrace::place(std::uintptr_t begin, std::uintptr_t end, std::uintptr_t offset, const char* path) noexcept {
  for (unsigned i = 0; i < kept(); ++i) {
    frame& each = frames_[i];
    if (each.lookup >= begin && each.lookup < end) {
      each.file_offset = each.lookup - begin + offset;
      copy_text(each.module, sizeof each.module, path);
    }
  }
}

/// Reads /proc/self/maps, whose lines are "begin-end rwxp offset device inode   path".
void backtrace::find_modules() noexcept {
  const int file = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return;
  }
  char buffer[2048];
  std::size_t used = 0;
  for (ssize_t got = 0; (got = read(file, buffer + used, sizeof buffer - 1 - used)) > 0;) {
    used += static_cast<std::size_t>(got);
    buffer[used] = '\0';
    char* line = buffer;
    while (char* const newline = std::strchr(line, '\n')) {
      *newline = '\0';
      const char* at = line;
      const std::uintptr_t begin = parse_hex(at);
      at += *at == '-' ? 1 : 0;
      const std::uintptr_t end = parse_hex(at);
      const char* const path = std::strchr(at, '/');
      if (path != nullptr && std::strlen(at) > 6) {
        at += 6;  // " r-xp "
        place(begin, end, parse_hex(at), path);
      }
      line = newline + 1;
    }
    used -= static_cast<std::size_t>(line - buffer);
    std::memmove(buffer, line, used);
    if (used == sizeof buffer - 1) {
      used = 0;  // a line longer than the buffer: its path is not one of a module of ours
    }
  }
  close(file);
}

void backtrace::find_functions(const char* module) noexcept {
  const int file = open(module, O_RDONLY | O_CLOEXEC);
  ElfW(Ehdr) header;
  if (file < 0 || !read_at(file, 0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    if (file >= 0) {
      close(file);
    }
    return;
  }
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment;
    if (!read_at(file, header.e_phoff + i * sizeof segment, &segment) || segment.p_type != PT_LOAD) {
      continue;
    }
    for (unsigned n = 0; n < kept(); ++n) {
      frame& each = frames_[n];
      if (std::strcmp(each.module, module) == 0 && each.file_offset >= segment.p_offset &&
          each.file_offset < segment.p_offset + segment.p_filesz) {
        each.address = each.file_offset - segment.p_offset + segment.p_vaddr;
      }
    }
  }
  ElfW(Shdr) table{};
  for (unsigned i = 0; i < header.e_shnum; ++i) {
    ElfW(Shdr) section;
    if (read_at(file, header.e_shoff + i * sizeof section, &section) &&
        (section.sh_type == SHT_SYMTAB || (section.sh_type == SHT_DYNSYM && table.sh_type != SHT_SYMTAB))) {
      table = section;
    }
  }
  ElfW(Shdr) names{};
  if (table.sh_type == SHT_NULL || !read_at(file, header.e_shoff + table.sh_link * sizeof names, &names)) {
    close(file);
    return;
  }
  constexpr std::size_t batch = 64;
  ElfW(Sym) symbols[batch];
  const std::size_t total = table.sh_size / sizeof symbols[0];
  for (std::size_t first = 0; first < total; first += batch) {
    const std::size_t count = total - first < batch ? total - first : batch;
    if (!read_at(file, table.sh_offset + first * sizeof symbols[0], symbols, count)) {
      break;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const ElfW(Sym) & symbol = symbols[i];
      if (ELF64_ST_TYPE(symbol.st_info) != STT_FUNC || symbol.st_shndx == SHN_UNDEF) {
        continue;
      }
      for (unsigned n = 0; n < kept(); ++n) {
        frame& each = frames_[n];
        if (each.address - symbol.st_value < symbol.st_size && each.function[0] == '\0' &&
            std::strcmp(each.module, module) == 0) {
          const ssize_t got = pread(file, each.function, sizeof each.function - 1,
                                    static_cast<off_t>(names.sh_offset + symbol.st_name));
          each.function[got > 0 ? got : 0] = '\0';
          each.in_function = each.address - symbol.st_value;
        }
      }
    }
  }
  close(file);
}

void backtrace::resolve() noexcept {
  find_modules();
  for (unsigned i = 0; i < kept(); ++i) {
    bool seen = frames_[i].module[0] == '\0';
    for (unsigned before = 0; before < i && !seen; ++before) {
      seen = std::strcmp(frames_[before].module, frames_[i].module) == 0;
    }
    if (!seen) {
      find_functions(frames_[i].module);
    }
  }
}

void backtrace::frame::print(message& out) const noexcept {
  out.address(pc);
  if (function[0] != '\0') {
    out.text(" ").text(function).text("+").address(in_function);
  }
  if (module[0] != '\0') {
    const char* const slash = std::strrchr(module, '/');
    out.text(" (").text(slash != nullptr ? slash + 1 : module).text("+").address(address).text(")");
  }
  if (times > 1) {
    out.text(" x ").number(times);
  }
  out.text("\n");
}

backtrace::place_of_frame backtrace::place_of(unsigned i) const noexcept {
  if (i < innermost || count_ <= innermost + outermost) {
    return {i, i};
  }
  const unsigned number = count_ - (innermost + outermost) + i;
  return {number, innermost + (number - innermost) % outermost};
}

void backtrace::print(message& out, unsigned first) const noexcept {
  for (unsigned i = first; i < kept(); ++i) {
    if (i == innermost && count_ > innermost + outermost) {
      out.text("    ... ").number(count_ - innermost - outermost).text(" more ...\n");
    }
    const place_of_frame at = place_of(i);
    out.text("    #").number(at.number - first).text(" ");
    frames_[at.slot].print(out);
  }
}

int backtrace::outermost_with(const char* part) const noexcept {
  for (unsigned i = kept(); i-- > 0;) {
    const place_of_frame at = place_of(i);
    if (std::strstr(frames_[at.slot].function, part) != nullptr) {
      return static_cast<int>(at.number);
    }
  }
  return -1;
}

namespace {
/// Returns where the parameter types begin in the mangled name of a function of pirn. Null for other names, and for
/// templates and their members.
const char* end_of_plain_name_of_pirn(const char* name) noexcept {
  constexpr char prefix[] = "_ZN";
  constexpr char ours[] = "4pirn";
  if (std::strncmp(name, prefix, sizeof prefix - 1) != 0) {
    return nullptr;
  }
  name += sizeof prefix - 1;
  name += *name == 'K' ? 1 : 0;
  if (std::strncmp(name, ours, sizeof ours - 1) != 0) {
    return nullptr;
  }
  while (*name >= '0' && *name <= '9') {  // each part of a name is its length and itself
    std::size_t length = 0;
    for (; *name >= '0' && *name <= '9'; ++name) {
      length = 10 * length + static_cast<std::size_t>(*name - '0');
    }
    if (length > std::strlen(name)) {
      return nullptr;  // cut
    }
    name += length;
  }
  return *name == 'E' ? name : nullptr;
}
}  // namespace

unsigned backtrace::first_of_caller() const noexcept {
  unsigned own = 0;
  bool internal = false;  // then the called function is inlined into the caller
  for (; own < kept() && own < innermost; ++own) {
    const char* const function = frames_[own].function;
    const char* const end = end_of_plain_name_of_pirn(function);
    if (end == nullptr) {
      break;
    }
    const char* const found = std::strstr(function, "6detail");
    internal = found != nullptr && found < end;
  }
  if (own == 0 || own == kept()) {
    return 0;
  }
  return internal ? own : own - 1;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
