// Files and directories of the disk of an execution.
#include "sim/disk.hpp"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "sim/execution.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

namespace {

constexpr std::string_view mount_point = "/sim";

bool fault(bool sim::faults::* what) { return current->fault(what); }

std::size_t size_of(const ::iovec* parts, int count) noexcept {
  std::size_t size = 0;
  for (int i = 0; i < count; ++i) {
    size += parts[i].iov_len;
  }
  return size;
}

/// Returns how many of `size` bytes a call moves.
std::size_t moved(std::size_t size) { return size > 1 && fault(&sim::faults::short_transfers) ? 1 : size; }

bool can_read(const open_file& of) noexcept { return (of.flags & O_ACCMODE) != O_WRONLY; }
bool can_write(const open_file& of) noexcept { return (of.flags & O_ACCMODE) != O_RDONLY; }

}  // namespace

disk_state::disk_state(std::size_t capacity) : capacity_(capacity), root_(make(true)) { ++root_.references; }

bool disk_state::has(const char* path) noexcept {
  const std::string_view text = path;
  return current != nullptr && current->disk() != nullptr && text.starts_with(mount_point) &&
         (text.size() == mount_point.size() || text[mount_point.size()] == '/');
}

open_file* disk_state::find(int descriptor) noexcept {
  const auto index = static_cast<std::size_t>(descriptor - first);
  return index < files_.size() && files_[index].of != nullptr ? &files_[index] : nullptr;
}

std::size_t disk_state::open_files() const noexcept {
  return static_cast<std::size_t>(
      std::ranges::count_if(files_, [](const open_file& each) { return each.of != nullptr; }));
}

inode* disk_state::look_up(std::string_view path) { return walk(path).found; }

disk_state::place disk_state::walk(std::string_view path) {
  place at;
  at.folders = {&root_};
  at.found = &root_;
  path.remove_prefix(mount_point.size());
  at.slash = path.ends_with('/');
  while (!path.empty() && at.error == 0) {
    const std::size_t end = std::min(path.find('/'), path.size());
    const std::string_view name = path.substr(0, end);
    path.remove_prefix(std::min(end + 1, path.size()));
    if (name.empty() || name == ".") {
      continue;
    }
    if (!at.name.empty()) {  // the name before this one has to be a directory
      if (at.found == nullptr || !at.found->directory) {
        at.error = at.found == nullptr ? -ENOENT : -ENOTDIR;
        at.found = nullptr;
        break;
      }
      at.folders.push_back(at.found);
    }
    const auto found = at.folder()->entries.find(name);
    at.name = name;
    at.found = found != at.folder()->entries.end() ? found->second : nullptr;
    at.error = name == ".." ? -ENOTSUP : name.size() > 255 ? -ENAMETOOLONG : 0;
  }
  if (at.error == 0 && at.slash && at.found != nullptr && !at.found->directory) {
    at.error = -ENOTDIR;
  }
  return at;
}

inode& disk_state::make(bool directory) {
  inode& made = inodes_.emplace_back();
  made.directory = directory;
  made.number = inodes_.size();
  return made;
}

int disk_state::number_of(inode& of, int flags) {
  ++of.references;
  files_.push_back({.of = &of, .flags = flags});
  return first + static_cast<int>(files_.size()) - 1;
}

void disk_state::release(inode& of) noexcept {
  if (--of.references == 0) {
    used_ -= of.bytes.size();
    of.bytes.clear();
  }
}

void disk_state::apply(names_change what) {
  for (const names_change::edit& each : what.edits) {
    if (each.after != nullptr) {
      ++each.after->references;
      each.folder->entries[each.name] = each.after;
    } else {
      each.folder->entries.erase(each.name);
    }
  }
  for (const names_change::edit& each : what.edits) {
    if (each.before != nullptr) {
      release(*each.before);
    }
  }
  names_changes_.push_back(std::move(what));
}

int disk_state::open(std::string_view path, int flags) {
  const bool writes = (flags & O_ACCMODE) != O_RDONLY;
  const bool creates = (flags & O_CREAT) != 0;
  const bool unnamed = (flags & O_TMPFILE) == O_TMPFILE;
  if (unnamed && !writes) {
    return -EINVAL;
  }
  const place at = walk(path);
  if (at.error != 0 && at.found == nullptr) {
    return at.error;
  }
  if (creates && at.slash) {
    return -EISDIR;
  }
  if (at.error != 0) {
    return at.error;
  }
  if (at.found == nullptr) {
    if (!creates) {
      return -ENOENT;
    }
    inode& made = make(false);
    apply({{{at.folder(), at.name, nullptr, &made}}});
    return number_of(made, flags);
  }
  if (unnamed) {
    return at.found->directory ? number_of(make(false), flags) : -ENOTDIR;
  }
  if (creates && (flags & O_EXCL) != 0) {
    return -EEXIST;
  }
  if (!at.found->directory && (flags & O_DIRECTORY) != 0) {
    return -ENOTDIR;
  }
  if (at.found->directory && (writes || creates || (flags & O_TRUNC) != 0)) {
    return -EISDIR;
  }
  if ((flags & O_TRUNC) != 0) {
    resize(*at.found, 0);
  }
  return number_of(*at.found, flags);
}

void disk_state::close(open_file& of) noexcept {
  release(*std::exchange(of.of, nullptr));
  of.listed.clear();
}

std::int64_t disk_state::read(open_file& of, const ::iovec* parts, int count, std::int64_t offset) {
  if (offset < 0) {
    return -EINVAL;
  }
  if (!can_read(of)) {
    return -EBADF;
  }
  if (of.of->directory && size_of(parts, count) != 0) {
    return -EISDIR;
  }
  const std::string& bytes = of.of->bytes;
  std::size_t from = std::min(static_cast<std::size_t>(offset), bytes.size());
  const std::size_t whole = moved(std::min(bytes.size() - from, size_of(parts, count)));
  for (std::size_t left = whole; left != 0; ++parts) {
    const std::size_t size = std::min(left, parts->iov_len);
    std::memcpy(parts->iov_base, bytes.data() + from, size);
    from += size;
    left -= size;
  }
  return static_cast<std::int64_t>(whole);
}

std::int64_t disk_state::write(open_file& of, const ::iovec* parts, int count, std::int64_t offset) {
  if (offset < 0) {
    return -EINVAL;
  }
  if (!can_write(of)) {
    return -EBADF;
  }
  std::string bytes;
  for (int i = 0; i < count; ++i) {
    bytes.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  }
  if (bytes.empty()) {
    return 0;
  }
  std::string& now = of.of->bytes;
  const std::size_t at = (of.flags & O_APPEND) != 0 ? now.size() : static_cast<std::size_t>(offset);
  if (at >= max_file_size) {
    return -EFBIG;
  }
  const std::size_t end = std::min(max_file_size, now.size() + (capacity_ - used_));
  if (at >= end) {
    return -ENOSPC;
  }
  bytes.resize(moved(std::min(bytes.size(), end - at)));
  const std::size_t size = std::max(now.size(), at + bytes.size());
  used_ += size - now.size();
  now.resize(size);
  now.replace(at, bytes.size(), bytes);
  const std::size_t count_of_bytes = bytes.size();
  of.of->changes.push_back({.offset = at, .bytes = std::move(bytes)});
  return static_cast<std::int64_t>(count_of_bytes);
}

void disk_state::resize(inode& of, std::size_t size) {
  used_ = used_ - of.bytes.size() + size;
  of.bytes.resize(size);
  of.changes.push_back({.offset = size, .bytes = {}, .resizes = true});
}

std::int64_t disk_state::truncate(open_file& of, std::int64_t size) {
  if (size < 0 || !can_write(of)) {
    return -EINVAL;
  }
  const auto wanted = static_cast<std::size_t>(size);
  if (wanted > max_file_size) {
    return -EFBIG;
  }
  if (wanted > of.of->bytes.size() + (capacity_ - used_)) {
    return -ENOSPC;
  }
  resize(*of.of, wanted);
  return 0;
}

std::int64_t disk_state::make_directory(std::string_view path) {
  const place at = walk(path);
  if (at.error != 0 && at.found == nullptr) {
    return at.error;
  }
  if (at.found != nullptr) {
    return -EEXIST;
  }
  apply({{{at.folder(), at.name, nullptr, &make(true)}}});
  return 0;
}

std::int64_t disk_state::rename(std::string_view from, std::string_view to) {
  const place old = walk(from);
  const place made = walk(to);
  if ((old.error != 0 && old.found == nullptr) || (made.error != 0 && made.found == nullptr)) {
    return old.error != 0 && old.found == nullptr ? old.error : made.error;
  }
  if (old.name.empty() || made.name.empty()) {
    return -EBUSY;
  }
  if (old.found == nullptr) {
    return -ENOENT;
  }
  if (!old.found->directory && (old.slash || made.slash)) {
    return -ENOTDIR;
  }
  if (std::ranges::find(made.folders, old.found) != made.folders.end()) {
    return -EINVAL;  // into itself
  }
  if (made.found != nullptr && std::ranges::find(old.folders, made.found) != old.folders.end()) {
    return -ENOTEMPTY;
  }
  if (made.found == old.found) {
    return 0;
  }
  if (made.found != nullptr) {
    if (made.found->directory != old.found->directory) {
      return made.found->directory ? -EISDIR : -ENOTDIR;
    }
    if (!made.found->entries.empty()) {
      return -ENOTEMPTY;
    }
  }
  apply({{{old.folder(), old.name, old.found, nullptr}, {made.folder(), made.name, made.found, old.found}}});
  return 0;
}

std::int64_t disk_state::remove(std::string_view path) {
  const place at = walk(path);
  if (at.error != 0) {
    return at.error;
  }
  if (at.found == nullptr || at.name.empty()) {
    return at.found == nullptr ? -ENOENT : -EBUSY;
  }
  if (!at.found->entries.empty()) {
    return -ENOTEMPTY;
  }
  apply({{{at.folder(), at.name, at.found, nullptr}}});
  return 0;
}

std::int64_t disk_state::list(open_file& of, void* into, std::size_t size) {
  if (!of.of->directory) {
    return -ENOTDIR;
  }
  if (of.position == 0) {
    of.listed = {{".", of.of}, {"..", of.of}};
    of.listed.insert(of.listed.end(), of.of->entries.begin(), of.of->entries.end());
  }
  std::size_t used = 0;
  for (; of.position < of.listed.size(); ++of.position) {
    const auto& [name, entry] = of.listed[of.position];
    const std::size_t whole = (offsetof(::dirent64, d_name) + name.size() + 1 + 7) / 8 * 8;
    if (whole > size - used) {
      return used != 0 ? static_cast<std::int64_t>(used) : -EINVAL;
    }
    ::dirent64 made{};
    made.d_ino = entry->number;
    made.d_reclen = static_cast<unsigned short>(whole);
    made.d_type = entry->directory ? DT_DIR : DT_REG;
    std::memcpy(made.d_name, name.c_str(), name.size() + 1);
    std::memcpy(static_cast<char*>(into) + used, &made, whole);
    used += whole;
  }
  return static_cast<std::int64_t>(used);
}

}  // namespace sim::detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
