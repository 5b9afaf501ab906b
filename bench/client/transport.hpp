// The network of `client`, in memory. Nothing is copied: a segment that arrives is a view of the peer's memory, and a
// sender lends its bytes until they are taken. A segment is at most a page, as in networks whose zero-copy receivers
// hand over pages. It is on its way while all other fibers have their turn: clients are faster than the wire that they
// share.
#pragma once

#include <algorithm>
#include <cstring>
#include <span>

#include "fibers.hpp"
#include "ring.hpp"

namespace bench {

using bytes = std::span<const std::byte>;

namespace {

class connection;

/// The program at the other end.
class peer {
 public:
  /// Takes some bytes, which exist until this returns. Returns how many more times `answer` must be called.
  virtual std::size_t take(bytes part) = 0;
  /// Answers by `connection::answer`, once its earlier answer has arrived.
  virtual void answer(connection& to) = 0;

 protected:
  ~peer() = default;
};

/// A stream in both directions; each end is for one sender and one receiver at a time.
class connection {
 public:
  static constexpr std::size_t segment_size = 4096;

  explicit connection(peer& to) : peer_(to) {}
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  /// Sends two pieces, one after the other, and waits until they are taken. Returns false if the peer has closed.
  [[nodiscard]] BENCH_INTERFACE BENCH_SWITCHES bool send(bytes head, bytes rest = {}) {
    loop.yield();
    if (closed_) {
      return false;
    }
    for (const bytes part : {head, rest}) {
      if (!part.empty()) {
        unanswered_ += peer_.take(part);
      }
    }
    return true;
  }

  /// Waits for the next segment. Returns an empty one when the peer has closed and everything has arrived.
  [[nodiscard]] BENCH_INTERFACE BENCH_SWITCHES bytes receive() {
    do {
      loop.yield();
      if (in_flight_.empty() && unanswered_ != 0) {
        --unanswered_;
        peer_.answer(*this);
      }
    } while (in_flight_.empty() && !closed_);
    return next_segment();
  }

  /// Called by the peer: sends data, from memory that stays unchanged until the data has arrived and was used.
  void answer(bytes data) {
    check(!in_flight_.full(), "there is room for what is in flight");
    in_flight_.push(data);
  }
  /// Called by the peer: ends the stream after the segments in flight.
  void close() { closed_ = true; }

 private:
  bytes next_segment() {
    if (in_flight_.empty()) {
      return {};
    }
    bytes& first = in_flight_.front();
    const bytes segment = first.first(std::min(first.size(), segment_size));
    first = first.subspan(segment.size());
    if (first.empty()) {
      in_flight_.pop();
    }
    return segment;
  }

  peer& peer_;
  std::size_t unanswered_ = 0;
  bool closed_ = false;
  ring<bytes, 4> in_flight_;
};

/// The input of a client: the connection, and the rest of the last segment.
class reader {
 public:
  explicit reader(connection& from) : from_(from) {}

  /// Returns the available bytes, and waits for some if necessary. Empty at the end of the stream.
  [[nodiscard]] bytes available() {
    if (rest_.empty()) {
      rest_ = from_.receive();
    }
    return rest_;
  }
  void consume(std::size_t size) { rest_ = rest_.subspan(size); }

  /// Returns at most `most` of the next bytes, without a copy.
  [[nodiscard]] bytes take(std::size_t most) {
    const bytes here = available();
    const bytes taken = here.first(std::min(most, here.size()));
    consume(taken.size());
    return taken;
  }

  /// Copies as many bytes as there is room for. Returns false if the stream ends before.
  [[nodiscard]] bool read_exactly(std::span<std::byte> to) {
    while (!to.empty()) {
      const bytes part = take(to.size());
      if (part.empty()) {
        return false;
      }
      std::memcpy(to.data(), part.data(), part.size());
      to = to.subspan(part.size());
    }
    return true;
  }

 private:
  connection& from_;
  bytes rest_;
};

}  // namespace
}  // namespace bench
