// Reads the requests of a connection and has them answered.
#include "http/connection.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "detail/system.hpp"
#include "http/body_pace.hpp"
#include "http/request_checks.hpp"
#include "pirn/fiber/this_fiber.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t first_capacity = 4 * kib;
constexpr std::size_t min_body_room = 16 * kib;
constexpr std::size_t output_enough = 64 * kib;  // written even though more responses follow
constexpr int max_unsent = 256 * kib;            // that the kernel takes for a client that does not read
constexpr std::size_t max_held_idle = 4 * kib;   // beside the input, between requests
constexpr unsigned request_budget = 8;           // requests that are answered before other fibers get a turn
constexpr std::size_t max_empty_lines = 4;       // before a request

/// Whether a read would not wait.
bool has_arrived(const tcp_stream& stream) noexcept {
  pollfd interest{stream.native(), POLLIN, 0};
  return platform::system::poll(&interest, 1, 0) > 0;
}

/// Whether the client has ended its half. Reads do not show this if the server has shut the socket for reading: they
/// still return bytes that come, and the end of the stream in between.
bool has_ended(const tcp_stream& stream) noexcept {
  ::tcp_info about{};
  const descriptor::syscall look = [](int native, void* into) noexcept -> std::int64_t {
    ::socklen_t size = sizeof about;
    return platform::system::getsockopt(native, IPPROTO_TCP, TCP_INFO, into, &size);  // why it fails does not matter
  };
  return !stream.invoke(look, &about) || about.tcpi_state != TCP_ESTABLISHED;
}

}  // namespace

void connection::run() noexcept {
  owner_.enter(*this);
  static_cast<void>(stream_.set_unsent_limit(max_unsent));  // else the system's own limit holds
  try {
    while (keep_) {
      request_parser parser(parsed_request_, owner_.options);
      parser_ = &parser;
      if (!read_request()) {
        break;
      }
      answer();
      whole_output_ = output_.size();
      begin_ = parsed_;
      if (begin_ < filled_ && ++budget_used_ == request_budget) {
        budget_used_ = 0;
        this_fiber::yield();  // a client can prevent any other suspension for as long as it likes
      }
    }
  } catch (const std::bad_alloc&) {
    // No memory for a request or response: this connection ends after the earlier answers, and the others continue.
    output_.resize(std::min(whole_output_, output_.size()));
  }
  if (flush() && !peer_ended_) {
    release_buffers();
    linger();
  }
  owner_.leave(*this);
}

bool connection::read_request() {
  if (!read_header()) {
    return false;
  }
  stop_waiting();
  return check_header() && (parser_->is_done() || read_body());
}

void connection::begin_to_wait(platform::time_point now) noexcept {
  if (waits_since_.load(platform::memory_order_relaxed) == busy) {
    began_to_wait_ = now;
    waits_since_.store(now.time_since_epoch().count(), platform::memory_order_release);
  }
}

void connection::stop_waiting() noexcept {
  auto since = waits_since_.load(platform::memory_order_relaxed);
  if (since > busy && waits_since_.compare_exchange_strong(since, busy)) {
    return;
  }
  if (since == evicted) {
    last_ = true;  // the request had already come
    waits_since_.store(busy, platform::memory_order_release);
  }
}

bool connection::is_evicted() const noexcept { return waits_since_.load(platform::memory_order_acquire) == evicted; }

bool connection::read_header() {
  platform::time_point deadline = platform::never;
  std::size_t empty_lines = 0;
  parsed_ = begin_;
  for (;;) {
    empty_lines += skip_empty_lines();
    if (empty_lines > max_empty_lines) {
      return refuse(400);  // a client could hold the connection for ever with them
    }
    if (parsed_ < filled_ && !(filled_ - begin_ == 1 && input_[begin_] == '\r')) {
      if (!parse()) {
        return false;
      }
      if (parser_->is_head_done()) {
        return true;
      }
    }
    if (filled_ == begin_) {
      if (!receive_first()) {
        return false;
      }
      deadline = platform::never;  // half of an empty line may have started a deadline
    } else {
      if (deadline == platform::never) {
        const platform::time_point now = platform::now();
        deadline = after(owner_.options.header_timeout, now);
        begin_to_wait(now);
      }
      if (!make_room() || !receive(deadline)) {
        return false;
      }
    }
  }
}

std::size_t connection::skip_empty_lines() noexcept {
  // Empty lines before a request are skipped (RFC 9112, 2.2).
  std::size_t skipped = 0;
  while (parsed_ == begin_ && filled_ - begin_ >= 2 && std::memcmp(input_.get() + begin_, "\r\n", 2) == 0) {
    begin_ += 2;
    parsed_ = begin_;
    ++skipped;
  }
  return skipped;
}

bool connection::make_room() {
  if (filled_ < capacity_) {
    return true;
  }
  if (begin_ > 0) {
    std::memmove(input_.get(), input_.get() + begin_, filled_ - begin_);
    parsed_ -= begin_;
    filled_ -= begin_;
    begin_ = 0;
    return true;
  }
  if (capacity_ >= owner_.options.header_limit) {
    const bool in_first_line = std::memchr(input_.get(), '\n', filled_) == nullptr;
    return refuse(in_first_line ? 414 : 431);
  }
  grow(std::min(2 * capacity_, owner_.options.header_limit));
  return true;
}

void connection::grow(std::size_t capacity) {
  auto larger = std::make_unique_for_overwrite<char[]>(capacity);
  if (filled_ > 0) {
    std::memcpy(larger.get(), input_.get(), filled_);
  }
  if (first_ == nullptr) {
    first_ = std::move(input_);
  }
  input_ = std::move(larger);
  capacity_ = capacity;
}

bool connection::parse() {
  parsed_ = begin_ + parser_->parse(input_.get() + begin_, parsed_ - begin_, filled_ - begin_);
  return parser_->refused() == 0 || refuse(parser_->refused());
}

bool connection::check_header() {
  if (const int status = check_head(parsed_request_, input_.get() + begin_); status != 0) {
    return refuse(status);
  }
  if (const int status = parser_->begin_body(); status != 0) {
    return refuse(status);
  }
  if (parsed_request_.expects && !parser_->is_done() && parsed_ == filled_) {
    output_.append("HTTP/1.1 100 Continue\r\n\r\n");
  }
  return true;
}

bool connection::read_body() {
  const platform::time_point deadline = after(owner_.options.body_timeout);
  body_pace pace(owner_.options.body_rate, owner_.options.body_grace);
  const std::size_t body_begin = parsed_;
  for (;;) {
    if (parsed_ < filled_ && !parse()) {
      return false;
    }
    if (parser_->is_done()) {
      return true;
    }
    parsed_ = filled_ = body_begin;  // parsed bytes are in the body's string, so their place is free again
    if (capacity_ - body_begin < min_body_room) {
      grow(body_begin + min_body_room);
    }
    if (!receive(std::min(deadline, pace.deadline()))) {
      return false;
    }
    pace.got(filled_ - body_begin);
  }
}

bool connection::receive_first() {
  begin_ = parsed_ = filled_ = 0;
  if (!flush()) {
    return false;
  }
  if (capacity_ > first_capacity) {
    // The buffer does not shrink to nothing: the last read may have stopped at its end, with the next request behind
    // it. Only a read that fills less than the buffer shows that there is nothing more to read yet.
    input_ = std::move(first_);
    capacity_ = std::min(first_capacity, owner_.options.header_limit);
  }
  if (held_elsewhere() > max_held_idle) {
    release_buffers();
  }
  const platform::time_point now = platform::now();
  const platform::time_point deadline = after(owner_.options.idle_timeout, now);
  begin_to_wait(now);
  idle_.store(true, platform::memory_order_seq_cst);
  // A request that a client sent before it could know of the end is answered; later ones are not awaited.
  if (owner_.draining.load(platform::memory_order_seq_cst) && !has_arrived(stream_)) {
    peer_ended_ = true;
    return false;
  }
  bool ready = true;
  if (capacity_ == 0) {
    // Many connections never send anything: they get a buffer only when they do.
    ready = stream_.wait_readable(deadline).has_value();
    if (ready) {
      grow(std::min(first_capacity, owner_.options.header_limit));
    }
  }
  const auto got = ready ? stream_.read(input_.get(), capacity_, deadline) : result<std::size_t>(0);
  idle_.store(false, platform::memory_order_relaxed);
  if (!got || *got == 0) {
    // No client waits for a further answer, even if the deadline has passed or the server stops. But an answer that is
    // still on its way gets its time.
    const bool may_read = got ? ready : got.error() == io_error::timed_out;
    peer_ended_ = !may_read || stream_.unacknowledged().value_or(0) == 0;
    return false;
  }
  filled_ = *got;
  return true;
}

std::size_t connection::held_elsewhere() const noexcept {
  return output_.capacity() + parsed_request_.body.capacity() + response_.headers_.capacity() +
         response_.body_.capacity() + parsed_request_.fields.capacity() * sizeof parsed_request_.fields[0] +
         headers_.capacity() * sizeof headers_[0];
}

void connection::release_buffers() noexcept {
  release(output_);
  release(parsed_request_.body);
  release(parsed_request_.fields);
  release(headers_);
  release(response_.headers_);
  release(response_.body_);
}

bool connection::receive(platform::time_point deadline) {
  if (!flush()) {
    return false;
  }
  for (auto nap = first_nap;; nap = std::min(2 * nap, longest_nap)) {
    const auto got = stream_.read(input_.get() + filled_, capacity_ - filled_, deadline);
    if (got && *got > 0) {
      filled_ += *got;
      return true;
    }
    if (!got && got.error() != io_error::timed_out) {
      break;
    }
    if (!got || is_evicted() || platform::now() >= deadline) {
      return refuse(408);
    }
    if (has_ended(stream_)) {
      return refuse(400);  // within a request; the client may still read
    }
    // The socket was shut for reading between requests, and a request has begun since then. Its bytes wake no fiber.
    if (!this_fiber::sleep_until(std::min(after(nap), deadline))) {
      break;
    }
  }
  peer_ended_ = true;
  return false;
}

bool connection::refuse(int status) {
  response_.reset();
  response_.fail(status);
  keep_ = false;
  append_head(response_.body_.size());
  // The request may have been refused before its method was parsed.
  if (!std::string_view(input_.get() + begin_, filled_ - begin_).starts_with("HEAD ")) {
    output_.append(response_.body_);
  }
  return false;
}

void connection::answer() {
  headers_.clear();
  for (const auto& field : parsed_request_.fields) {
    headers_.push_back({text_of(field.name), text_of(field.value)});
  }
  // The target's authority takes precedence over Host (RFC 9112, 3.2.2).
  if (parsed_request_.host != parsed_request::npos) {
    headers_[parsed_request_.host].value = text_of(parsed_request_.authority);
  } else if (parsed_request_.authority.size > 0) {
    headers_.push_back({"Host", text_of(parsed_request_.authority)});
  }
  request asked;
  asked.method = text_of(parsed_request_.method);
  asked.target = text_of(parsed_request_.target);
  asked.headers = headers_;
  asked.body = parsed_request_.body;
  asked.minor_version = parsed_request_.version % 10;

  response_.reset();
  try {
    owner_.answer(asked, response_);
    if (!may_have_body(response_.status_)) {
      // The client would take a body for another response.
      response_.body_.clear();
      response_.file_.close();
    }
    load_small_file();
  } catch (...) {
    response_.reset();
    response_.fail(500);
  }
  keep_ = parsed_request_.keep && !response_.close_ && !last_ && !owner_.draining.load(platform::memory_order_relaxed);
  const bool from_file = response_.file_.is_open();
  append_head(from_file ? response_.file_length_ : response_.body_.size());
  if (asked.method == "HEAD") {
    response_.file_.close();
    return;
  }
  if (from_file) {
    send_file();
    response_.file_.close();
  } else {
    send_body();
  }
  if (output_.size() >= output_enough) {
    flush();
  }
}

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
