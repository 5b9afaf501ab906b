// One connection of a server: reads requests, has them answered, writes responses.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "http/parser.hpp"
#include "http/server_state.hpp"
#include "http/write_pace.hpp"
#include "pirn/net/tcp_stream.hpp"

namespace pirn {
PIRN_ABI_NAMESPACE_BEGIN
namespace http {

// Pauses between checks of a condition that wakes no fiber.
constexpr platform::duration first_nap = std::chrono::milliseconds(1);
constexpr platform::duration longest_nap = std::chrono::milliseconds(100);

/// Empties a container and frees its memory, which neither `clear` nor the assignment of an empty container does.
template <class Container>
void release(Container& whole) noexcept {
  Container().swap(whole);
}

constexpr bool may_have_length(int status) noexcept { return status != 204 && status != 304; }
constexpr bool may_have_body(int status) noexcept { return may_have_length(status) && status != 205; }

/// The input buffer holds, in this order, the parsed part of the present request, the bytes that have come after it,
/// and free space:
///     begin_ .. parsed_ .. filled_ .. capacity_
/// Header bytes stay in place until the request is answered; body bytes are removed as they come. Responses gather in
/// `output_`, which is written when no complete request is left in the input.
class connection {
 public:
  connection(server_state& owner, tcp_stream stream, unsigned worker) noexcept
      : owner_(owner), stream_(std::move(stream)), worker_(worker), pace_(owner.options.write_timeout) {}
  /// Serves until either side ends the connection.
  void run() noexcept;

 private:
  friend class pirn::detail::intrusive_list<connection>;
  friend class server_state;

  bool read_request();
  bool read_header();
  /// Skips empty lines before a request; returns their number.
  std::size_t skip_empty_lines() noexcept;
  bool read_body();
  /// Parses the bytes that have come. Returns false if the request was refused.
  bool parse();
  bool check_header();
  void answer();
  void append_head(std::uint64_t length);
  /// Reads the file of the response into its body if it is small: the head must have its true length.
  void load_small_file();
  /// Sends the file of the response. A file that is shorter than the head says ends the connection.
  void send_file();
  /// Answers with an error that ends the connection. Returns false, for the caller to return.
  bool refuse(int status);
  /// Between these two calls the server may end the connection to make room for others.
  void begin_to_wait(platform::time_point now) noexcept;
  void stop_waiting() noexcept;
  [[nodiscard]] bool is_evicted() const noexcept;
  bool receive(platform::time_point deadline);
  bool receive_first();
  bool make_room();
  void grow(std::size_t capacity);
  /// Returns the memory that the buffers hold, except the input.
  [[nodiscard]] std::size_t held_elsewhere() const noexcept;
  void release_buffers() noexcept;
  void send_body();
  /// Writes `output_`, and a body behind it. Returns false if the connection has ended instead.
  bool flush(std::string_view body = {}) noexcept;
  /// Calls `put` with a maximum size and a deadline until `left` bytes have been sent. Returns false as `flush` does.
  template <class Put>
  bool put_each(std::uint64_t left, Put put);
  /// Drops the data that the client has not taken. Returns false, for the caller to return.
  bool cut_off() noexcept;
  /// Ends the server's half, and waits until the client has taken everything and ended its half.
  void linger() noexcept;
  [[nodiscard]] std::string_view text_of(parsed_request::piece piece) const noexcept {
    return http::text_of(piece, input_.get() + begin_);
  }

  server_state& owner_;
  tcp_stream stream_;
  const unsigned worker_;
  write_pace pace_;                            ///< of all that is written
  pirn::detail::list_links<connection> links;  ///< of the list in server_state, under its lock
  /// Whether the connection is between requests. The connection sets `idle_`, then reads `draining`; the server sets
  /// `draining`, then reads `idle_`.
  platform::atomic<bool> idle_{false};
  static constexpr platform::duration::rep busy = 0;
  static constexpr platform::duration::rep evicted = -1;
  /// When the wait for the rest of a head, or for the client's end, began. `server_state::make_room` sets it to
  /// `evicted`.
  platform::atomic<platform::duration::rep> waits_since_{busy};
  platform::time_point began_to_wait_{};
  bool listed_as_waiting_ = false;  ///< in server_state, under its lock

  std::unique_ptr<char[]> input_;
  /// The buffer from before `input_` grew. It is kept: a new one would lie behind freed memory of large requests, which
  /// the C library then cannot give back to the system.
  std::unique_ptr<char[]> first_;
  std::size_t capacity_ = 0;
  std::size_t begin_ = 0;
  std::size_t parsed_ = 0;
  std::size_t filled_ = 0;
  std::string output_;
  std::size_t whole_output_ = 0;      ///< bytes of `output_` that are whole responses
  request_parser* parser_ = nullptr;  ///< of the present request
  parsed_request parsed_request_;
  std::vector<header> headers_;
  response response_;
  std::int64_t date_second_ = -1;
  std::string date_;
  unsigned budget_used_ = 0;  ///< requests that had arrived when the one before had been answered
  bool last_ = false;         ///< whether the present request is the last one that is answered
  bool keep_ = true;          ///< whether another request may follow
  bool peer_ended_ = false;   ///< nothing more can come, or the connection is broken
  bool cut_ = false;          ///< to be closed with a reset, which drops data that the client has not taken
};

}  // namespace http
PIRN_ABI_NAMESPACE_END
}  // namespace pirn
