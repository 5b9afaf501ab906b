// Programs in memory, for explorations of code that starts others.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "pirn/io/pipe.hpp"
#include "pirn/sim/explore.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace sim {

namespace detail {
class program_table;
}  // namespace detail

/// The programs that `pirn::process` can start in an exploration, by their names, while this object exists. Made by the
/// program of the exploration, one at a time. Other names, and all names without it, are those of missing programs.
///
/// A started program is a thread of the exploration, and so is what ends it: it counts as two of the sixteen. A signal
/// that has no other use ends it some time later, whatever it does then, and closes its pipes. The working directory
/// and the environment have no meaning. A program that was not waited for is reported as a leak.
class programs {
 public:
  /// The arguments and standard descriptors of a program.
  struct call {
    std::span<const std::string> arguments;  ///< the first is its name
    pipe_end& input;                         ///< closed unless the caller has made a pipe for it
    pipe_end& output;                        ///< as `input`
    pipe_end& error;                         ///< as `input`
  };
  /// A program: a function that returns its exit code, of which 8 bits count. Its pipes are closed when it has ended.
  using body = std::function<int(const call&)>;

  /// Aborts outside of an exploration, and beside another such object.
  explicit programs(std::map<std::string, body> by_name);
  /// Kills those that run, and waits for their ends.
  ~programs();
  programs(const programs&) = delete;
  programs& operator=(const programs&) = delete;

 private:
  std::unique_ptr<detail::program_table> table_;
};

}  // namespace sim
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
