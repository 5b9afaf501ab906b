// Sockets that a service manager has opened for this process.
#pragma once

#include <string>
#include <vector>

#include "pirn/io/descriptor.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// A socket, or another open file, that a service manager has handed to this process.
struct inherited_socket {
  std::string name;   ///< as the manager calls it (`FileDescriptorName=`); "unknown" if it does not say
  descriptor socket;  ///< for `tcp_listener::adopt` and its like, which check what it is
};

/// Takes over the sockets of systemd's socket activation, or of another manager with its protocol: the environment
/// variables LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES, which it removes. The sockets are closed on exec from now on.
/// Returns an empty list without such variables, or if they are meant for another process. Fails with
/// io_error::bad_syntax if a variable is malformed, with std::errc::bad_file_descriptor if a descriptor is not open,
/// and as `descriptor::adopt`; only the last of these closes the sockets, all of them. Throws std::bad_alloc. Does not
/// suspend. Call it before other threads exist, since the environment is not safe for threads.
[[nodiscard]] result<std::vector<inherited_socket>> take_inherited_sockets();

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
