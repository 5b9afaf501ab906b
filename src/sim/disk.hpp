// The disk of an execution: files and directories in memory, and the part of them that would survive a crash.
//
// Each operation is one step at the disk. A change is in memory first. `synced` is what is on the disk for certain; the
// changes since then are kept one by one, so that `restart` can choose which of them have reached it too.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pirn/sim/explore.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim::detail {

/// A file or a directory.
struct inode {
  /// Bytes that were written at an offset, or a new size.
  struct change {
    std::size_t offset;
    std::string bytes;
    bool resizes = false;  ///< to `offset`
  };
  using names = std::map<std::string, inode*, std::less<>>;

  bool directory = false;
  std::uint64_t number = 0;
  unsigned references = 0;  ///< names and open files
  std::string bytes, synced_bytes;
  std::vector<change> changes;  ///< since the last sync
  names entries, synced_entries;
};

/// An open file. Programs know it by a number.
struct open_file {
  inode* of = nullptr;  ///< null once it is closed
  int flags = 0;
  bool lost = false;                                        ///< it was open at a crash
  std::size_t position = 0;                                 ///< of the next read or write without an offset
  std::vector<std::pair<std::string, inode*>> listed = {};  ///< the entries, taken at the first read of a directory
};

/// The disk. Functions return the results of the system calls, with errors as negated numbers.
class disk_state {
 public:
  /// Numbers of descriptors, beyond those of sockets; none is used twice, so that a use after a close is seen.
  static constexpr int first = 1 << 24;
  static constexpr std::size_t max_file_size = std::size_t{1} << 20;

  explicit disk_state(std::size_t capacity);

  /// Returns whether the path is on the mounted disk of the execution.
  [[nodiscard]] static bool has(const char* path) noexcept;
  [[nodiscard]] open_file* find(int descriptor) noexcept;
  [[nodiscard]] std::size_t open_files() const noexcept;
  [[nodiscard]] inode* look_up(std::string_view path);

  int open(std::string_view path, int flags);
  void close(open_file& of) noexcept;
  std::int64_t read(open_file& of, const ::iovec* parts, int count, std::int64_t offset);
  std::int64_t write(open_file& of, const ::iovec* parts, int count, std::int64_t offset);
  std::int64_t truncate(open_file& of, std::int64_t size);
  std::int64_t sync(open_file& of);
  /// Lets a sync fail: the writes since the last one stay in memory, but no later sync saves them, as on Linux.
  static void fail_sync(open_file& of) noexcept;
  std::int64_t make_directory(std::string_view path);
  std::int64_t rename(std::string_view from, std::string_view to);
  std::int64_t remove(std::string_view path);
  std::int64_t list(open_file& of, void* into, std::size_t size);

  void crash() noexcept;
  void restart();
  [[nodiscard]] bool crashed() const noexcept { return crashed_; }

 private:
  /// The end of a walk along a path.
  struct place {
    int error = 0;
    std::vector<inode*> folders;  ///< from the root to the one with the name
    std::string name;             ///< empty for the root
    inode* found = nullptr;
    bool slash = false;  ///< at the end of the path

    [[nodiscard]] inode* folder() const noexcept { return folders.back(); }
  };
  /// A change of names that a crash leaves undone or done.
  struct names_change {
    struct edit {
      inode* folder;
      std::string name;
      inode* before;
      inode* after;
    };
    std::vector<edit> edits;
  };
  enum class parents : std::uint8_t { included, excluded };

  [[nodiscard]] place walk(std::string_view path);
  inode& make(bool directory);
  int number_of(inode& of, int flags);
  void apply(names_change what);
  void release(inode& of) noexcept;
  void resize(inode& of, std::size_t size);
  [[nodiscard]] static bool needs(const names_change& later, const names_change& earlier, parents how) noexcept;
  static void make_last(const names_change& what);
  void sync_names(const inode& folder);
  [[nodiscard]] static std::string after_crash(const inode& of);
  void restore(inode& of);

  const std::size_t capacity_;
  std::size_t used_ = 0;
  bool crashed_ = false;
  std::deque<inode> inodes_;  ///< none is reused
  inode& root_;
  std::vector<names_change> names_changes_;  ///< since the last sync
  std::deque<open_file> files_;              ///< by number
};

}  // namespace sim::detail

namespace platform::system {

[[nodiscard]] inline bool is_file(int descriptor) noexcept { return descriptor >= sim::detail::disk_state::first; }
// The calls on a descriptor that are those of a socket too.
int close_file(int descriptor) noexcept;
int flags_of_file(int descriptor, int command) noexcept;
ssize_t read_file(int descriptor, const ::iovec* parts, int count) noexcept;
ssize_t write_file(int descriptor, const ::iovec* parts, int count) noexcept;
int stat_file(int descriptor, struct ::stat* into) noexcept;

}  // namespace platform::system
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
