// Syncs and crashes of a disk, and the class by which programs make one.
#include <algorithm>
#include <ranges>
#include <utility>

#include "pirn/detail/contract.hpp"
#include "pirn/sim/disk.hpp"
#include "sim/disk.hpp"
#include "sim/execution.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim {
namespace detail {

namespace {

bool reached_the_disk() { return current->choose(2) == 0; }

/// Makes a change of a file, as far as it is said to have reached the disk.
void replay(std::string& bytes, const inode::change& what, std::size_t size) {
  if (what.resizes) {
    bytes.resize(what.offset);
    return;
  }
  bytes.resize(std::max(bytes.size(), what.offset + size));
  bytes.replace(what.offset, size, what.bytes, 0, size);
}

}  // namespace

bool disk_state::needs(const names_change& later, const names_change& earlier, parents how) noexcept {
  for (const names_change::edit& a : later.edits) {
    for (const names_change::edit& b : earlier.edits) {
      const auto concerns = [&b](const inode* what) {
        return what != nullptr && (what == b.before || what == b.after);
      };
      if ((a.folder == b.folder && a.name == b.name) || concerns(a.before) || concerns(a.after) ||
          (how == parents::included && concerns(a.folder))) {
        return true;
      }
    }
  }
  return false;
}

void disk_state::make_last(const names_change& what) {
  for (const names_change::edit& each : what.edits) {
    if (each.after != nullptr) {
      each.folder->synced_entries[each.name] = each.after;
    } else {
      each.folder->synced_entries.erase(each.name);
    }
  }
}

/// Makes the changes of this directory's names last, and those that they need.
void disk_state::sync_names(const inode& folder) {
  std::vector<names_change> kept;
  std::vector<names_change> synced;
  for (names_change& each : names_changes_ | std::views::reverse) {
    const bool here = std::ranges::find(each.edits, &folder, &names_change::edit::folder) != each.edits.end();
    const bool needed = here || std::ranges::any_of(synced, [&each](const names_change& later) {
                          return needs(later, each, parents::excluded);
                        });
    (needed ? synced : kept).push_back(std::move(each));
  }
  std::ranges::reverse(kept);
  names_changes_ = std::move(kept);
  for (const names_change& change : synced | std::views::reverse) {
    make_last(change);
  }
}

std::int64_t disk_state::sync(open_file& of) {
  if (of.of->directory) {
    sync_names(*of.of);
  } else {
    for (const inode::change& each : std::exchange(of.of->changes, {})) {
      replay(of.of->synced_bytes, each, each.bytes.size());
    }
  }
  return 0;
}

void disk_state::fail_sync(open_file& of) noexcept { of.of->changes.clear(); }

void disk_state::crash() noexcept {
  crashed_ = true;
  for (open_file& each : files_) {
    each.lost = true;
  }
}

std::string disk_state::after_crash(const inode& of) {
  std::string bytes = of.synced_bytes;
  for (const inode::change& each : of.changes) {
    const std::size_t size = each.bytes.size();
    const bool grows = !each.resizes && each.offset + size > bytes.size();
    // 0: all of it; 1: nothing; 2: half of it; 3: room for it, which is zeros.
    switch (current->choose(each.resizes ? 2 : 2 + (size > 1 ? 1 : 0) + (grows ? 1 : 0))) {
      case 0:
        replay(bytes, each, size);
        break;
      case 1:
        break;
      case 2:
        if (size > 1) {
          replay(bytes, each, size / 2);
          break;
        }
        [[fallthrough]];
      default:
        bytes.resize(each.offset + size);
    }
  }
  return bytes;
}

void disk_state::restore(inode& of) {
  ++of.references;
  if (of.references > 1) {
    return;
  }
  if (!of.directory) {
    of.bytes = of.synced_bytes = after_crash(of);
    of.changes.clear();
    used_ += of.bytes.size();
    return;
  }
  of.entries = of.synced_entries;
  for (const auto& [name, entry] : of.entries) {
    restore(*entry);
  }
}

void disk_state::restart() {
  crashed_ = false;
  std::vector<names_change> lost;
  for (names_change& change : std::exchange(names_changes_, {})) {
    const bool impossible = std::ranges::any_of(
        lost, [&change](const names_change& earlier) { return needs(change, earlier, parents::included); });
    if (impossible || !reached_the_disk()) {
      lost.push_back(std::move(change));
      continue;
    }
    make_last(change);
  }
  used_ = 0;
  for (inode& each : inodes_) {
    each.references = 0;
    each.entries.clear();
  }
  restore(root_);
  for (const open_file& each : files_) {
    if (each.of != nullptr && ++each.of->references == 1) {
      each.of->bytes.clear();  // it has no name any more
    }
  }
}

}  // namespace detail

namespace {

/// Begins a step at the disk.
void step(const detail::disk_state& at) noexcept {
  if (platform::checked::watching) {
    detail::current->touch(&at);
  }
}

}  // namespace

disk::disk(std::size_t capacity) {
  if (detail::current == nullptr || detail::current->disk() != nullptr) {
    pirn::detail::fail_contract("sim::disk made outside of an exploration, or beside another one");
  }
  state_ = std::make_unique<detail::disk_state>(capacity);
  detail::current->disk() = state_.get();
}

disk::~disk() {
  detail::current->disk() = nullptr;
  if (const std::size_t left = state_->open_files(); left != 0) {
    detail::current->fail(outcome::leak, "files on the sim::disk are open at its end: " + std::to_string(left));
  }
}

void disk::crash() noexcept {
  step(*state_);
  state_->crash();
}

void disk::restart() noexcept {
  step(*state_);
  const platform::quiet unseen;
  state_->restart();
}

std::optional<std::string> disk::contents(std::string_view path) const {
  const platform::quiet unseen;
  const detail::inode* const found =
      detail::disk_state::has(std::string(path).c_str()) ? state_->look_up(path) : nullptr;
  return found != nullptr && !found->directory ? std::optional(found->bytes) : std::nullopt;
}

}  // namespace sim
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
