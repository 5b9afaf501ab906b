// Ends the process with a message after a system call that failed.
#include "detail/refused.hpp"
#include "pirn/detail/contract.hpp"

#include <system_error>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace platform {

void refused(const char* call, int error, const char* consequence) noexcept {
  pirn::detail::fail_contract(call, " failed (error ", static_cast<std::uint64_t>(error), ", ",
                              std::string_view(std::system_category().message(error)), "): ", consequence);
}

}  // namespace platform
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
