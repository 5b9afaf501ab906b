// Evaluates the conditional headers of a request.
#include "http/conditions.hpp"

#include <algorithm>
#include <optional>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

namespace {

enum class comparison : bool { strong, weak };

/// Whether a list of entity tags has this one. Tags behind a malformed one do not count.
bool lists_tag(std::string_view list, std::string_view tag, comparison how) noexcept {
  if (list == "*") {
    return true;
  }
  for (;;) {
    list.remove_prefix(std::min(list.find_first_not_of(" \t,"), list.size()));
    const bool is_weak = list.starts_with("W/");
    list.remove_prefix(is_weak ? 2 : 0);
    const auto end = list.starts_with('"') ? list.find('"', 1) : list.npos;
    if (end == list.npos) {
      return false;
    }
    if (list.substr(0, end + 1) == tag && (how == comparison::weak || !is_weak)) {
      return true;
    }
    list.remove_prefix(end + 1);
  }
}

/// Whether the lists in all fields of that name, taken together, have the tag; nullopt if there is no such field.
std::optional<bool> find_tag(const request& asked, std::string_view name, std::string_view tag,
                             comparison how) noexcept {
  std::optional<bool> found;
  for (const header& field : asked.headers) {
    if (same_token(field.name, name)) {
      found = found.value_or(false) || lists_tag(field.value, tag, how);
    }
  }
  return found;
}

/// Returns the date in the only field of that name. A malformed date, or a second field, counts as no condition:
/// nullopt.
std::optional<std::int64_t> find_date(const request& asked, std::string_view name) noexcept {
  const auto has_name = [name](const header& field) { return same_token(field.name, name); };
  if (std::ranges::count_if(asked.headers, has_name) != 1) {
    return std::nullopt;
  }
  return parse_date(std::ranges::find_if(asked.headers, has_name)->value);
}

}  // namespace

condition check_conditions(const request& asked, std::string_view tag, std::int64_t modified) noexcept {
  // In the order of RFC 9110, 13.2.2.
  if (const auto has = find_tag(asked, "If-Match", tag, comparison::strong)) {
    if (!*has) {
      return condition::failed;
    }
  } else if (const auto since = find_date(asked, "If-Unmodified-Since"); since && modified > *since) {
    return condition::failed;
  }
  if (const auto has = find_tag(asked, "If-None-Match", tag, comparison::weak)) {
    return *has ? condition::not_modified : condition::holds;
  }
  const auto since = find_date(asked, "If-Modified-Since");
  return since && modified <= *since ? condition::not_modified : condition::holds;
}

bool range_applies(const request& asked, std::string_view tag, std::int64_t modified) noexcept {
  const auto condition = asked.find("If-Range");
  if (!condition) {
    return true;
  }
  return condition->starts_with('"') ? *condition == tag : parse_date(*condition) == modified;
}

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
