// The messages of misuse.
#pragma once

#include <stdexcept>
#include <string>

namespace pirn_test {

/// Returns the message of the std::logic_error that `call` throws, or an empty string.
template <class Call>
std::string logic_error_of(Call call) {
  try {
    call();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}
inline bool says(const std::string& message, const char* what) { return message.find(what) != std::string::npos; }

}  // namespace pirn_test
