// The driver of look-ups that asks name servers, by c-ares.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/look_ups.hpp"
#include "net/resolver/file_stamp.hpp"
#include "pirn/io/descriptor.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

/// The search list and the number of dots that resolv.conf or the options give.
struct search_rules {
  std::vector<std::string> domains;
  unsigned ndots = 1;
};

/// One thread at a time enters c-ares, under the lock of the look_ups; it never suspends in it. The sockets of c-ares
/// are watched by an epoll instance, so that a caller waits for one descriptor, with any engine.
class dns_driver final : public name_driver {
 public:
  /// Throws std::system_error.
  explicit dns_driver(const resolver::options& wanted);
  ~dns_driver() override;

  void ask(std::shared_ptr<query> what, end_call end, look_ups& of) noexcept override;
  platform::time_point next_look() noexcept override;
  result<> wait(platform::time_point deadline) noexcept override;
  void process() noexcept override;
  void cancel_all() noexcept override;

  /// Returns the rules of the present configuration. Reads it again if it has changed. Under the lock.
  [[nodiscard]] search_rules rules();

 private:
  class channel;

  /// Uses a new channel from now on if resolv.conf has changed. Queries under way stay in the old one. Without memory
  /// or descriptors for it the old configuration stays in use.
  void renew() noexcept;
  /// Sets the rules of the last channel. Throws std::bad_alloc.
  void read_rules();

  const resolver::options wanted_;
  descriptor ready_;                                ///< the epoll instance
  std::vector<std::unique_ptr<channel>> channels_;  ///< the last one takes new queries
  file_stamp read_at_;
  search_rules rules_;
};

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
