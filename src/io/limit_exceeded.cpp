// Implements the categories of errors that carry a limit: a value has 31 bits of it, and the category has the rest.
#include "pirn/io/limit_exceeded.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

constexpr std::uint64_t limits_in_category = std::uint64_t{1} << 31;
constexpr std::uint64_t count = 64;

class category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "pirn.limit"; }
  [[nodiscard]] std::string message(int value) const override {
    return "longer than the limit of " + std::to_string(limit_of(value)) + " bytes";
  }
  [[nodiscard]] std::error_condition default_error_condition(int /*value*/) const noexcept override {
    return std::errc::message_size;
  }
  /// Values begin with 1, since 0 would be no error.
  [[nodiscard]] std::uint64_t limit_of(int value) const noexcept {
    return first + (static_cast<std::uint32_t>(value) - 1);
  }

  std::uint64_t first = 0;  ///< the smallest limit
};

struct all_categories {
  all_categories() noexcept {
    for (std::uint64_t i = 0; i < count; ++i) {
      each[i].first = i * limits_in_category;
    }
  }
  category each[count];
};

}  // namespace

std::error_code limit_exceeded(std::size_t limit) noexcept {
  static const all_categories categories;
  const std::uint64_t carried = std::min<std::uint64_t>(limit, count * limits_in_category - 1);
  const auto value = static_cast<std::uint32_t>(carried % limits_in_category + 1);
  return {static_cast<int>(value), categories.each[carried / limits_in_category]};
}

std::optional<std::size_t> exceeded_limit(const std::error_code& error) noexcept {
  const auto* const from = dynamic_cast<const category*>(&error.category());
  return from != nullptr ? std::optional<std::size_t>(from->limit_of(error.value())) : std::nullopt;
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
