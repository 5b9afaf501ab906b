// Implements copying between streams: from the bytes that the source lends, or through a buffer.
#include "pirn/io/copy.hpp"

#include <memory>
#include <new>

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace detail {

namespace {

constexpr std::size_t buffer_size = 16 * 1024;

/// Returns false if the source does not lend.
bool copy_lent(erased_stream& from, erased_stream& to, platform::time_point deadline, copy_result& done) {
  for (;;) {
    result<read_view> lent = from.lend(deadline);
    if (!lent && lent.error() == std::errc::operation_not_supported) {
      return false;
    }
    if (!lent) {
      done.error = lent.error();
      return true;
    }
    if (lent->empty()) {
      return true;
    }
    const const_buffer part{lent->bytes().data(), lent->bytes().size()};
    std::size_t written = 0;
    done.error = write_parts(to, {&part, 1}, deadline, written);
    lent->consume(written);
    done.read += written;
    done.written += written;
    done.target_failed = static_cast<bool>(done.error);
    if (done.error) {
      return true;
    }
  }
}

void copy_through_buffer(erased_stream& from, erased_stream& to, platform::time_point deadline, copy_result& done) {
  const std::unique_ptr<std::byte[]> buffer(new (std::nothrow) std::byte[buffer_size]);
  if (buffer == nullptr) {
    done.error = make_error_code(std::errc::not_enough_memory);
    return;
  }
  for (;;) {
    const result<std::size_t> got = from.read(buffer.get(), buffer_size, deadline);
    if (!got) {
      done.error = got.error();
      return;
    }
    if (*got == 0) {
      return;
    }
    done.read += *got;
    const const_buffer part{buffer.get(), *got};
    done.error = write_parts(to, {&part, 1}, deadline, done.written);
    done.target_failed = static_cast<bool>(done.error);
    if (done.error) {
      return;
    }
  }
}

}  // namespace

copy_result copy(erased_stream from, erased_stream to, platform::time_point deadline) {
  copy_result done;
  if (!copy_lent(from, to, deadline, done)) {
    copy_through_buffer(from, to, deadline, done);
  }
  return done;
}

}  // namespace detail
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
