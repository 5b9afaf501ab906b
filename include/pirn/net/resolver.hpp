// Finds the addresses of names by DNS, and connects to them. Link pirn::resolver, which needs c-ares.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pirn/net/expert/happy_eyeballs.hpp"
#include "pirn/net/tcp_stream.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Looks names up, as the C library does: /etc/hosts first, then the name servers, search domains and options of
/// /etc/resolv.conf; but without blocking, and with a cache that keeps answers, also negative ones, for as long as the
/// servers allow. Changes of both files count from the next call on. One resolver serves a whole program: any fiber of
/// any worker, and any plain thread, may call it at once. Calls for one name share one query, and a caller that stops
/// or expires leaves the others undisturbed. The callers do all the work, so an idle resolver has no fiber or thread.
///
/// Every call takes an absolute deadline and is a suspension point. It fails with io_error::timed_out or stopped if it
/// expires or is stopped, and otherwise with:
/// - io_error::bad_syntax: the text is no name (over 253 bytes, a label over 63, a byte that is not printable ASCII);
/// - io_error::name_not_found: there is no such name;
/// - io_error::no_such_record: the name has no address, or no record of the wanted kind;
/// - io_error::name_server_failed: the servers refused or failed, no process listens there, or what they sent cannot be
///   read;
/// - io_error::name_server_silent: a server did not answer in all tries;
/// - std::errc::not_enough_memory.
/// Files are read on the caller's worker, when they have changed.
class resolver {
 public:
  /// Replaces settings of the machine's files. An empty list or a 0 leaves what they say.
  struct options {
    std::vector<endpoint> servers = {};            ///< name servers, in the order in which they are asked
    std::vector<std::string> search = {};          ///< domains that are tried behind a short name
    unsigned ndots = 0;                            ///< a name with as many dots is first tried as it is
    std::chrono::milliseconds timeout{0};          ///< of a try at a server, doubled after each round; 2 s if neither
                                                   ///< this nor `options timeout` says otherwise
    unsigned tries = 0;                            ///< rounds over all servers; 3 if neither this nor `options
                                                   ///< attempts` says otherwise
    std::string hosts_file = "/etc/hosts";         ///< addresses without a server; empty for none
    std::string resolv_conf = "/etc/resolv.conf";  ///< where the servers are read from
    std::size_t max_cached = 10'000;               ///< answers; the one that was not used for longest goes first,
                                                   ///< and none of more than 4 KiB is kept
    std::size_t max_queries = 10'000;              ///< under way at once; more fail with
                                                   ///< std::errc::resource_unavailable_try_again
    std::chrono::seconds max_time_to_live{3600};   ///< of an answer in the cache; 0 for no cache
    std::chrono::seconds max_negative_time_to_live{300};  ///< of one that a name or record does not exist
    /// Addresses come from getaddrinfo(3) and not from the servers above: from all that /etc/nsswitch.conf names, such
    /// as LDAP or mDNS. A thread of the blocking pool makes each call, which is neither shared nor cached. After a stop
    /// or the deadline it lasts until the C library gives up. So at most 64 of them may be under way. On a plain thread
    /// the caller waits. `servers`, `search`, `ndots`, `timeout` and `tries` have no effect on it.
    bool by_system = false;
  };
  /// A server of a service (an SRV record, RFC 2782).
  struct service {
    std::string host;            ///< its name
    std::uint16_t port = 0;      ///< where it listens
    std::uint16_t priority = 0;  ///< the lowest is tried first
    std::uint16_t weight = 0;    ///< its share among those of one priority
    friend bool operator==(const service&, const service&) = default;
  };
  /// Counts since the beginning.
  struct counts {
    std::uint64_t queries = 0;  ///< questions to servers, without repeated tries
    std::uint64_t shared = 0;   ///< questions that joined one under way
    std::uint64_t cached = 0;   ///< questions that the cache answered
  };

  /// Reads the configuration. Throws std::system_error if c-ares or the kernel refuses it: a bad option (its name is in
  /// the message), no memory, no descriptor.
  explicit resolver(const options& wanted);
  /// As the other, with the files of the machine alone.
  resolver();
  resolver(const resolver&) = delete;
  resolver& operator=(const resolver&) = delete;
  /// There may be no calls under way.
  ~resolver();

  /// Returns the addresses of a host, best first (RFC 6724); those without a route are last. At least one. An address
  /// literal is returned as it is; "localhost" and names below it are the loopback addresses (RFC 6761) unless the
  /// hosts file has others. At most 64 addresses of each family.
  [[nodiscard]] result<std::vector<ip_address>> look_up(std::string_view host, time_limit deadline = platform::never);
  /// Returns the servers of a service such as "_imaps._tcp.example.org", by priority and, within one, by a random order
  /// in which a greater weight is likely to come earlier. The name is taken as it is, without search domains.
  [[nodiscard]] result<std::vector<service>> services(std::string_view name, time_limit deadline = platform::never);
  /// Returns the texts (TXT records) of a name, each in one piece.
  [[nodiscard]] result<std::vector<std::string>> texts(std::string_view name, time_limit deadline = platform::never);

  /// Looks a host up and connects to the first of its addresses that answers, as `connect_any` does. Attempts begin
  /// when the first addresses are there: at once with those of IPv6, otherwise once the answer for IPv6 has come too or
  /// 50 ms have passed (RFC 8305). For fibers only; fails with std::errc::operation_not_permitted on a plain thread.
  [[nodiscard]] std::expected<tcp_stream, connect_error> connect(std::string_view host, std::uint16_t port,
                                                                 const connect_options& how,
                                                                 time_limit deadline = platform::never);
  /// As `connect` without options.
  [[nodiscard]] std::expected<tcp_stream, connect_error> connect(std::string_view host, std::uint16_t port,
                                                                 time_limit deadline = platform::never);

  /// Returns the counts. Any thread.
  [[nodiscard]] counts counted() const;

 private:
  class state;
  std::unique_ptr<state> state_;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
