// Which engine a runtime uses, and why.
#pragma once

#include "pirn/fiber/runtime.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// An engine, and the reason for it, as static texts.
struct engine_choice {
  const char* name;
  const char* why;
  bool completes = false;  ///< whether its engines are to have the completion half
  bool known = true;       ///< whether only descriptors, requests and timers wake through it
};

/// Chooses an engine and makes `options.make_engine` make it. Throws std::system_error if PIRN_ENGINE names none.
engine_choice choose_engine(runtime_options& options);

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
