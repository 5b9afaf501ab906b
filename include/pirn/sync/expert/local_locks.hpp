// Locks for the fibers of one worker: see pirn/sync/expert/local.hpp.
#pragma once

#include "pirn/sync/detail/local_domain.hpp"
#include "pirn/sync/mutex.hpp"
#include "pirn/sync/once.hpp"
#include "pirn/sync/recursive_mutex.hpp"
#include "pirn/sync/shared_mutex.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace detail {
extern template class basic_mutex<local_domain>;
extern template class basic_once_flag<local_domain>;
extern template class basic_recursive_mutex<local_domain>;
extern template class basic_shared_mutex<local_domain>;
}  // namespace detail

namespace local {

/// As `pirn::mutex`.
class mutex : public detail::basic_mutex<detail::local_domain> {
 public:
  using basic_mutex::basic_mutex;
};

/// As `pirn::recursive_mutex`.
class recursive_mutex : public detail::basic_recursive_mutex<detail::local_domain> {
 public:
  using basic_recursive_mutex::basic_recursive_mutex;
};

/// As `pirn::shared_mutex`.
class shared_mutex : public detail::basic_shared_mutex<detail::local_domain> {};

/// As `pirn::once_flag`.
class once_flag : public detail::basic_once_flag<detail::local_domain> {};

using pirn::call_once;

}  // namespace local
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
