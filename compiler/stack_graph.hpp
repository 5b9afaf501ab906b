// The largest stack that a call of a function uses, with all that it calls.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "stack_facts.hpp"
#include "stack_frames.hpp"

namespace pirn::plugin {

/// One function on the deepest path, or on the path to a function without a bound.
struct stack_step {
  std::string function;
  std::uint64_t bytes = 0;  ///< the function's own
};

struct stack_bound {
  std::optional<std::uint64_t> bytes;
  std::string why_none;  ///< a clause about the last function of `path`
  std::vector<stack_step> path;
};

class stack_graph {
 public:
  /// All references must outlive the graph. `otherwise` is the bound of unknown functions, if it is set.
  stack_graph(const stack_frames& here, const stack_facts& facts, std::optional<std::uint64_t> otherwise)
      : here_(here), facts_(facts), otherwise_(otherwise) {}

  const stack_bound& of(const std::string& function);

 private:
  stack_bound work_out(const std::string& function);
  stack_bound of_frame(const std::string& function, const stack_frame& frame);

  const stack_frames& here_;
  const stack_facts& facts_;
  const std::optional<std::uint64_t> otherwise_;
  std::map<std::string, stack_bound> known_;
  std::vector<std::string> under_way_;
};

/// `f` as in the source, in a form for messages.
std::string shown(const std::string& function);
/// "a (96) > b (48)".
std::string shown(const std::vector<stack_step>& path);

}  // namespace pirn::plugin
