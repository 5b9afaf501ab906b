// Ends the process with a message after a system call that failed.
#include "detail/refused.hpp"

#include <cstdio>
#include <cstdlib>
#include <system_error>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace platform {

void refused(const char* call, int error, const char* consequence) noexcept {
  std::fprintf(stderr, "pirn: %s failed (error %d, %s): %s\n", call, error,
               std::system_category().message(error).c_str(), consequence);
  std::abort();
}

}  // namespace platform
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
