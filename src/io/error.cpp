// Implements the error category of io_error: its messages and its equivalent std::errc conditions.
#include "pirn/io/error.hpp"

#include <string>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

namespace {

class category final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "pirn.io"; }
  [[nodiscard]] std::string message(int value) const override {
    switch (static_cast<io_error>(value)) {
      case io_error::timed_out:
      case io_error::stopped:
      case io_error::closed:
      case io_error::expired:
        return to_string(static_cast<wait_error>(value));
      case io_error::end_of_stream:
        return "the stream ended early";
      case io_error::stack_overflow:
        return "stack overflow: a system call was given memory in a guard (spawn with a larger stack_size)";
      case io_error::bad_syntax:
        return "the text is not well-formed";
      case io_error::shared:
        return "standard input, output or error is the same open file, and output to it would be lost if it were made "
               "non-blocking";
      case io_error::name_not_found:
        return "no host has that name";
      case io_error::no_such_record:
        return "the name has no record of the wanted kind";
      case io_error::name_server_failed:
        return "the name servers failed";
      case io_error::name_server_silent:
        return "no name server answered";
    }
    return "unknown error";
  }
  [[nodiscard]] std::error_condition default_error_condition(int value) const noexcept override {
    switch (static_cast<io_error>(value)) {
      case io_error::timed_out:
      case io_error::expired:
        return std::errc::timed_out;
      case io_error::stopped:
        return std::errc::operation_canceled;
      case io_error::closed:
        return std::errc::bad_file_descriptor;
      case io_error::end_of_stream:
        return std::errc::connection_aborted;
      case io_error::stack_overflow:
        return std::errc::bad_address;
      case io_error::bad_syntax:
        return std::errc::invalid_argument;
      case io_error::shared:
        return std::errc::device_or_resource_busy;
      case io_error::name_not_found:
      case io_error::no_such_record:
      case io_error::name_server_failed:
      case io_error::name_server_silent:
        break;
    }
    return {value, *this};
  }
};

}  // namespace

const std::error_category& io_category() noexcept {
  static const category instance;
  return instance;
}

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
