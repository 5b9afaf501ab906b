// Chooses the engine of a runtime: from its options, the environment and what the kernel allows.
#include "fiber/engine_choice.hpp"

#include <cstdlib>
#include <string_view>
#include <system_error>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

std::unique_ptr<engine> make_uring_or_epoll_engine() {
  const char* why = nullptr;
  auto made = make_uring_engine(why);
  return made != nullptr ? std::move(made) : make_epoll_engine();  // the kernel may have no room for more rings
}

}  // namespace

engine_choice choose_engine(runtime_options& options) {
  if (options.make_engine) {
    return {.name = "of the program", .why = "runtime_options::make_engine", .known = false};
  }
  engine_choice chosen{.name = "epoll", .why = "runtime_options::engine"};
  engine_kind kind = options.engine;
  if (kind == engine_kind::automatic) {
    const char* const named = std::getenv("PIRN_ENGINE");
    const std::string_view name = named != nullptr ? named : "";
    chosen.why = named != nullptr ? "PIRN_ENGINE" : "the default";
    if (name == "uring") {
      kind = engine_kind::uring;
    } else if (!name.empty() && name != "epoll" && name != "automatic") {
      throw std::system_error(std::make_error_code(std::errc::invalid_argument),
                              "pirn: PIRN_ENGINE is neither epoll nor uring nor automatic");
    }
  }
  options.make_engine = make_epoll_engine;
  if (kind == engine_kind::uring) {
    if (const char* const refusal = uring_refusal()) {
      chosen.why = refusal;
    } else {
      chosen.name = "io_uring";
      chosen.completes = true;
      options.make_engine = make_uring_or_epoll_engine;
    }
  }
  return chosen;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
