// Implements the reading of answers: records by c-ares, and their times to live.
#include "net/resolver/dns_answer.hpp"

#include <ares.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <optional>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

constexpr int max_addresses = 64;
constexpr std::size_t max_records = 256;
constexpr std::uint16_t soa_type = 6;

/// Reads fields of a message, within its bounds.
class cursor {
 public:
  explicit cursor(std::span<const std::uint8_t> message) noexcept : message_(message) {}
  [[nodiscard]] bool skip(std::size_t size) noexcept {
    if (message_.size() - at_ < size) {
      return false;
    }
    at_ += size;
    return true;
  }
  [[nodiscard]] std::optional<std::uint32_t> number(std::size_t size) noexcept {
    if (message_.size() - at_ < size) {
      return {};
    }
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < size; ++i) {
      value = value << 8 | message_[at_++];
    }
    return value;
  }
  /// Skips a name, of which only the first part stands here.
  [[nodiscard]] bool skip_name() noexcept {
    while (at_ < message_.size()) {
      const std::uint8_t length = message_[at_];
      if (length >= 0xc0) {
        return skip(2);
      }
      if (!skip(length + std::size_t{1})) {
        return false;
      }
      if (length == 0) {
        return true;
      }
    }
    return false;
  }

 private:
  std::span<const std::uint8_t> message_;
  std::size_t at_ = 0;
};

/// Returns the shortest time to live of the answers, or else that of the negative answer; 0 if neither can be read.
std::chrono::seconds time_to_live_of(std::span<const std::uint8_t> message) noexcept {
  constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
  cursor at(message);
  if (!at.skip(4)) {  // number and flags
    return {};
  }
  const auto questions = at.number(2), answers = at.number(2), authorities = at.number(2);
  if (!authorities || !at.skip(2)) {
    return {};
  }
  for (std::uint32_t i = 0; i < *questions; ++i) {
    if (!at.skip_name() || !at.skip(4)) {
      return {};
    }
  }
  std::uint32_t shortest = none;
  std::uint32_t negative = none;
  for (std::uint32_t i = 0; i < *answers + *authorities; ++i) {
    if (!at.skip_name()) {
      return {};
    }
    const auto type = at.number(2), kind = at.number(2), time = at.number(4), size = at.number(2);
    if (!kind || !time || !size) {
      return {};
    }
    if (i < *answers) {
      shortest = std::min(shortest, *time);
    }
    if (i >= *answers && type == soa_type && *size > 4) {
      cursor inside = at;
      const auto minimum = inside.skip(*size - 4u) ? inside.number(4) : std::nullopt;
      negative = std::min({negative, *time, minimum.value_or(0)});
    }
    if (!at.skip(*size)) {
      return {};
    }
  }
  // A chain of aliases that ends without the record has both: the negative part counts. `none` is above the limit.
  const std::uint32_t found = negative != none ? std::min(negative, shortest) : shortest;
  return std::chrono::seconds(found > std::numeric_limits<std::int32_t>::max() ? 0 : found);  // RFC 2181, 8
}

std::error_code error_of(int status) noexcept {
  switch (status) {
    case ARES_SUCCESS:
      return {};
    case ARES_ENOTFOUND:
      return io_error::name_not_found;
    case ARES_ENODATA:
      return io_error::no_such_record;
    case ARES_EBADNAME:
    case ARES_EBADSTR:
      return io_error::bad_syntax;
    case ARES_ETIMEOUT:
      return io_error::name_server_silent;
    case ARES_ECANCELLED:
    case ARES_EDESTRUCTION:
      return io_error::stopped;
    case ARES_ENOMEM:
      return std::make_error_code(std::errc::not_enough_memory);
    default:  // also ARES_ECONNREFUSED: a server that refuses or fails, or no socket for it
      return io_error::name_server_failed;
  }
}

int read_addresses(bool v6, const unsigned char* data, int size, std::vector<ip_address>& into) {
  int count = max_addresses;
  int status;
  if (v6) {
    ::ares_addr6ttl found[max_addresses];
    status = ::ares_parse_aaaa_reply(data, size, nullptr, found, &count);
    for (int i = 0; status == ARES_SUCCESS && i < count; ++i) {
      std::array<std::uint8_t, 16> bytes;
      std::memcpy(bytes.data(), &found[i].ip6addr, bytes.size());
      into.push_back(ip_address::v6(bytes));
    }
  } else {
    ::ares_addrttl found[max_addresses];
    status = ::ares_parse_a_reply(data, size, nullptr, found, &count);
    for (int i = 0; status == ARES_SUCCESS && i < count; ++i) {
      std::array<std::uint8_t, 4> bytes;
      std::memcpy(bytes.data(), &found[i].ipaddr, bytes.size());
      into.push_back(ip_address::v4(bytes));
    }
  }
  return status;
}

int read_services(const unsigned char* data, int size, std::vector<resolver::service>& into) {
  ::ares_srv_reply* first = nullptr;
  const int status = ::ares_parse_srv_reply(data, size, &first);
  const std::unique_ptr<void, decltype(&::ares_free_data)> owned(first, &::ares_free_data);
  for (const ::ares_srv_reply* each = first; each != nullptr && into.size() < max_records; each = each->next) {
    if (*each->host != '\0') {  // else the service is not offered (RFC 2782)
      into.push_back({each->host, each->port, each->priority, each->weight});
    }
  }
  return status;
}

int read_texts(const unsigned char* data, int size, std::vector<std::string>& into) {
  ::ares_txt_ext* first = nullptr;
  const int status = ::ares_parse_txt_reply_ext(data, size, &first);
  const std::unique_ptr<void, decltype(&::ares_free_data)> owned(first, &::ares_free_data);
  for (const ::ares_txt_ext* each = first; each != nullptr; each = each->next) {
    if (each->record_start != 0 || into.empty()) {
      if (into.size() == max_records) {
        break;
      }
      into.emplace_back();
    }
    into.back().append(reinterpret_cast<const char*>(each->txt), each->length);
  }
  return status;
}

}  // namespace

answer read_answer(record_kind asked, int status, std::span<const std::uint8_t> message) noexcept try {
  answer made;
  if (status == ARES_SUCCESS) {
    const int size = static_cast<int>(message.size());
    if (asked == record_kind::srv) {
      status = read_services(message.data(), size, made.services);
    } else if (asked == record_kind::txt) {
      status = read_texts(message.data(), size, made.texts);
    } else {
      status = read_addresses(asked == record_kind::aaaa, message.data(), size, made.addresses);
    }
  }
  if (status == ARES_SUCCESS || status == ARES_ENOTFOUND || status == ARES_ENODATA) {
    made.time_to_live = time_to_live_of(message);
  }
  made.error = error_of(status);
  if (!made.error && made.addresses.empty() && made.services.empty() && made.texts.empty()) {
    made.error = io_error::no_such_record;
  }
  return made;
} catch (const std::bad_alloc&) {
  answer none;
  none.error = std::make_error_code(std::errc::not_enough_memory);
  return none;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
