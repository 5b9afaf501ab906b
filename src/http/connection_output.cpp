// The output of a connection: heads, bodies and files, and the end of the connection.
#include <algorithm>
#include <charconv>
#include <ctime>

#include "http/connection.hpp"
#include "http/read_at.hpp"
#include "pirn/fiber/this_fiber.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

namespace {

constexpr std::size_t copied_body = std::size_t{16} * 1024;  // larger ones are sent from where the handler has put them
constexpr std::size_t copy_step = std::size_t{64} * 1024;    // of a large file at a time
constexpr std::size_t max_lingering_bytes = std::size_t{256} * 1024;
// An evicted connection has this much time, from the beginning of its wait, to deliver the data that is on its way.
constexpr platform::duration time_on_the_way = std::chrono::seconds(1);

void append_number(std::string& to, std::uint64_t number) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, number);
  to.append(digits, end.ptr);
}

}  // namespace

void connection::send_body() {
  if (response_.body_.size() <= copied_body) {
    output_.append(response_.body_);
    return;
  }
  release(parsed_request_.body);  // a client that reads slowly need not keep the request in memory
  flush(response_.body_);
}

void connection::append_head(std::uint64_t length) {
  const std::int64_t second = ::time(nullptr);
  if (second != date_second_) {
    date_second_ = second;
    date_ = "Date: " + format_date(second) + "\r\n";
    if (!owner_.options.name.empty()) {
      date_ += "Server: " + owner_.options.name + "\r\n";
    }
  }
  if (response_.status_ == 200) [[likely]] {
    output_.append("HTTP/1.1 200 OK\r\n");
  } else {
    output_.append("HTTP/1.1 ");
    append_number(output_, static_cast<std::uint64_t>(response_.status_));
    output_.append(" ").append(reason_of(response_.status_)).append("\r\n");
  }
  output_.append(date_).append(response_.headers_);
  if (may_have_length(response_.status_)) {
    output_.append("Content-Length: ");
    append_number(output_, length);
    output_.append("\r\n");
  }
  if (!keep_) {
    output_.append("Connection: close\r\n");
  } else if (parsed_request_.version < 11) {
    output_.append("Connection: keep-alive\r\n");
  }
  output_.append("\r\n");
}

void connection::load_small_file() {
  if (!response_.file_.is_open() || response_.file_length_ > small_file) {
    return;
  }
  const std::size_t length = response_.file_length_;
  const int file = response_.file_.native();
  struct ::stat about{};
  auto done = look_at(file, about);
  if (done) {
    done = read_one_content(file, response_.file_offset_, length, response_.body_, about);
  }
  response_.file_.close();
  // The Content-Range of a part that is shorter than the handler thought would be wrong.
  if (!done || (response_.status_ == 206 && response_.body_.size() < length)) {
    const bool restless = !done && done.error() == std::errc::resource_unavailable_try_again;
    response_.reset();
    response_.fail(restless ? 503 : 500);
  }
}

void connection::send_file() {
  std::string copy;
  // If this throws, no head is sent.
  copy.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(response_.file_length_, copy_step)));
  const int file = response_.file_.native();
  struct ::stat about{};
  const bool known = look_at(file, about).has_value();  // before the fiber may suspend
  if (!flush()) {
    return;
  }
  if (!known) {
    keep_ = false;
    return;
  }
  const bool described = response_.file_size_ != 0;
  auto size = described ? response_.file_size_ : static_cast<std::uint64_t>(about.st_size);
  auto changed = described ? response_.file_modified_ : modified_at(about);
  // Appending to a file, renaming it or changing its owner leaves the part that is sent as it was.
  const auto is_written_over = [&]() noexcept {
    const auto size_now = static_cast<std::uint64_t>(about.st_size);
    if (!S_ISREG(about.st_mode) || (size == size_now && changed == modified_at(about))) {
      return false;
    }
    const bool grown = size < size_now;
    size = size_now;
    changed = modified_at(about);
    return !grown;
  };
  release(parsed_request_.body);
  // Does not use sendfile, which sends zeros if the file is truncated meanwhile: the data in the socket is still the
  // file's page.
  std::uint64_t offset = response_.file_offset_;
  std::string_view unsent;
  put_each(response_.file_length_, [&](std::size_t max_size, platform::time_point deadline) -> result<std::size_t> {
    if (unsent.empty()) {
      // If the disk fails, the file ends. The rest of an overwritten file belongs to another content than the bytes
      // that have been sent.
      if (!read_one_content(file, offset, std::min(max_size, copy_step), copy, about) || is_written_over()) {
        return 0;
      }
      offset += copy.size();
      unsent = copy;
    }
    const auto put = unsent.empty() ? 0 : stream_.write_some(unsent.data(), unsent.size(), deadline);
    unsent.remove_prefix(put.value_or(0));
    return put;
  });
}

bool connection::flush(std::string_view body) noexcept {
  if (output_.empty() || peer_ended_) {
    return !peer_ended_;
  }
  std::string_view head = output_;
  const bool sent =
      put_each(head.size() + body.size(), [&](std::size_t max_size, platform::time_point deadline) noexcept {
        // NOLINTNEXTLINE(bugprone-suspicious-stringview-data-usage): the size stands beside it
        const const_buffer parts[] = {{head.data(), head.size()}, {body.data(), std::min(max_size, body.size())}};
        const auto put = head.empty()   ? stream_.write_some(body.data(), max_size, deadline)
                         : body.empty() ? stream_.write_some(head.data(), max_size, deadline)
                                        : stream_.write_some(parts, deadline);
        const std::size_t of_head = std::min(put.value_or(0), head.size());
        head.remove_prefix(of_head);
        body.remove_prefix(put.value_or(0) - of_head);
        return put;
      });
  output_.clear();
  whole_output_ = 0;
  return sent;
}

template <class Put>
bool connection::put_each(std::uint64_t left, Put put) {
  // Bytes that earlier writes have put into the socket count too.
  if (platform::now() >= pace_.next_look() && !pace_.keeps_up(stream_)) {
    return cut_off();
  }
  while (left > 0) {
    const auto max_size = static_cast<std::size_t>(std::min<std::uint64_t>(left, write_pace::step));
    const auto done = put(max_size, pace_.next_look());
    if (!done) {
      if (done.error() == io_error::timed_out && pace_.keeps_up(stream_)) {
        continue;
      }
      return cut_off();
    }
    if (*done == 0) {
      keep_ = false;
      return false;  // there is no more to send; the client may take the bytes already sent
    }
    pace_.put(*done);
    left -= *done;
  }
  return true;
}

bool connection::cut_off() noexcept {
  keep_ = false;
  peer_ended_ = true;
  cut_ = true;
  return false;
}

void connection::linger() noexcept {
  // Closing with unread input makes the kernel send a reset, which may overtake the response. And after a plain close
  // the kernel keeps the data that the client has not taken, for as long as the client likes.
  static_cast<void>(stream_.shutdown(shutdown_half::write));
  begin_to_wait(platform::now());
  platform::time_point until = after(owner_.options.linger_timeout);
  auto nap = first_nap;
  bool ended = false;
  bool delivered = false;
  char ignored[1024];
  for (std::size_t total = 0; total < max_lingering_bytes;) {
    if (!ended) {
      const auto got = stream_.read(ignored, sizeof ignored, delivered ? until : std::min(until, pace_.next_look()));
      if (got && *got > 0) {
        total += *got;
        continue;
      }
      if (!got && got.error() != io_error::timed_out) {
        return;
      }
      ended = got.has_value();
    } else if (!this_fiber::sleep_until(std::min(pace_.next_look(), after(nap)))) {
      return;
    }
    const bool keeps_up = delivered || pace_.keeps_up(stream_);
    delivered = pace_.unacknowledged() <= 1;  // the end of the stream counts as one
    const platform::time_point now = platform::now();
    if (delivered && (ended || now >= until)) {
      return;
    }
    if (!delivered) {
      if (!keeps_up || (is_evicted() && now - began_to_wait_ >= time_on_the_way)) {
        cut_ = true;
        return;
      }
      until = after(owner_.options.linger_timeout);
      nap = std::min(2 * nap, longest_nap);
    }
  }
}

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
