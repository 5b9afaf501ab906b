// tcp_stream for libraries that are written against Boost.Asio's synchronous streams, such as Boost.Beast. The only
// header of net that needs Boost.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include "pirn/net/tcp_stream.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN

/// Models SyncReadStream and SyncWriteStream on a tcp_stream that it refers to. Calls suspend the fiber, not the
/// worker. They fail with boost::asio::error::eof at the end, timed_out after the deadline, operation_aborted if the
/// fiber was asked to stop, bad_descriptor when closed, else with the system's error.
class asio_stream {
 public:
  /// Refers to `under`, which must outlive it.
  explicit asio_stream(tcp_stream& under) noexcept : under_(&under) {}

  /// Sets the deadline of all later calls. The default is no deadline.
  void expires_at(time_limit deadline) noexcept { deadline_ = deadline; }
  /// Returns the stream that it refers to.
  [[nodiscard]] tcp_stream& next_layer() noexcept { return *under_; }

  /// Reads at least one byte into `buffers`, and returns how many. Suspends until there are some. 0 with an error.
  template <class MutableBufferSequence>
  std::size_t read_some(const MutableBufferSequence& buffers, boost::system::error_code& error) {
    error = {};
    const boost::asio::mutable_buffer into = first_of<boost::asio::mutable_buffer>(buffers);
    if (into.size() == 0) {
      return 0;
    }
    const auto got = under_->read(into.data(), into.size(), deadline_);
    if (got && *got == 0) {
      error = boost::asio::error::eof;
    }
    return count_of(got, error);
  }
  /// As the other `read_some`, but throws boost::system::system_error.
  template <class MutableBufferSequence>
  std::size_t read_some(const MutableBufferSequence& buffers) {
    return or_throw([&](boost::system::error_code& error) { return read_some(buffers, error); });
  }

  /// Writes at least one byte of `buffers`, and returns how many. Suspends until there is room. 0 with an error.
  template <class ConstBufferSequence>
  std::size_t write_some(const ConstBufferSequence& buffers, boost::system::error_code& error) {
    error = {};
    const boost::asio::const_buffer from = first_of<boost::asio::const_buffer>(buffers);
    if (from.size() == 0) {
      return 0;
    }
    return count_of(under_->write_some(from.data(), from.size(), deadline_), error);
  }
  /// As the other `write_some`, but throws boost::system::system_error.
  template <class ConstBufferSequence>
  std::size_t write_some(const ConstBufferSequence& buffers) {
    return or_throw([&](boost::system::error_code& error) { return write_some(buffers, error); });
  }

 private:
  /// Returns the first non-empty buffer. A call may do less than it was asked for, so one buffer at a time is enough.
  template <class Buffer, class Sequence>
  static Buffer first_of(const Sequence& buffers) {
    for (auto it = boost::asio::buffer_sequence_begin(buffers); it != boost::asio::buffer_sequence_end(buffers); ++it) {
      if (const Buffer buffer(*it); buffer.size() > 0) {
        return buffer;
      }
    }
    return {};
  }

  static std::size_t count_of(const result<std::size_t>& done, boost::system::error_code& error) {
    if (done) {
      return *done;
    }
    if (done.error() == io_error::timed_out || done.error() == io_error::expired) {
      error = boost::asio::error::timed_out;
    } else if (done.error() == io_error::stopped) {
      error = boost::asio::error::operation_aborted;
    } else if (done.error() == io_error::closed) {
      error = boost::asio::error::bad_descriptor;
    } else if (done.error() == io_error::stack_overflow) {
      error = boost::asio::error::fault;
    } else {
      error.assign(done.error().value(), boost::system::system_category());
    }
    return 0;
  }

  template <class Call>
  static std::size_t or_throw(const Call& call) {
    boost::system::error_code error;
    const std::size_t count = call(error);
    if (error) {
      throw boost::system::system_error(error);
    }
    return count;
  }

  tcp_stream* under_;
  platform::time_point deadline_ = platform::never;
};

PIRN_ABI_NAMESPACE_END
}  // namespace pirn
