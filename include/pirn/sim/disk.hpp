// A disk in memory, for explorations of programs that keep files.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pirn/sim/explore.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim {

namespace detail {
class disk_state;
}  // namespace detail

/// A disk that is mounted at "/sim" while this object exists: `pirn::file` and the calls of pirn/io/directory.hpp work
/// on paths below, and all other paths are the kernel's. Made by the program of an exploration, one at a time. Files
/// that are open at its end are reported as a leak. Each call is a point where other threads may run. There are no
/// links, and no ".." in paths. A `file::mapping` is a copy: it does not see what is written to the file later.
///
/// What is written is lost in a crash until `sync` of its file, and what was made, renamed or removed until `sync` of
/// its directory. The options `faults::disk_errors`, `faults::short_transfers` and `faults::slow_disk` make it worse.
class disk {
 public:
  /// Makes an empty disk for `capacity` bytes of files, holes included. A write that finds it full fails with
  /// std::errc::no_space_on_device. Aborts outside of an exploration, and beside another disk.
  explicit disk(std::size_t capacity = std::size_t{64} * 1024);
  ~disk();
  disk(const disk&) = delete;
  disk& operator=(const disk&) = delete;

  /// Loses power: from now on each call fails with std::errc::io_error.
  void crash() noexcept;
  /// Returns power after a `crash`. Of what was not synced, any part may have reached the disk, and the exploration
  /// tries them all: of the changes of one directory any that do not need a lost one; of the writes to one file any,
  /// each also in half or, where it made the file longer, as zeros. Files that were open before still fail.
  void restart() noexcept;
  /// Returns the bytes of a file as a program reads them; nothing without such a file. No scheduling point.
  [[nodiscard]] std::optional<std::string> contents(std::string_view path) const;

 private:
  std::unique_ptr<detail::disk_state> state_;
};

}  // namespace sim
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
