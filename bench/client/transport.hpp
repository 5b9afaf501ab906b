// The network of `client`, in memory. Nothing is copied: a segment that arrives is a view of the memory that the peer
// sent from, and who sends lends its bytes until they are taken. A segment is at most a page, as in networks whose
// zero-copy receivers hand over pages, and it is on its way while all other fibers have their turn: clients are faster
// than the wire that they share.
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

/// Who is at the other end.
class peer {
 public:
  /// Some bytes, which are there until this returns. How many times more it is to be asked for an answer.
  virtual std::size_t take(bytes part) = 0;
  /// Answers by `connection::answer`, when what it answered before has arrived.
  virtual void answer(connection& to) = 0;

 protected:
  ~peer() = default;
};

/// One stream in both directions, whose ends are for one sender and one receiver at a time.
class connection {
 public:
  static constexpr std::size_t segment_size = 4096;

  explicit connection(peer& to) : peer_(to) {}
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  /// Sends two pieces, one after the other, and waits until they are taken. False when the peer has closed.
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

  /// Waits for the next segment. Empty when the peer has closed and all has arrived.
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

  /// By the peer: what it sends, from memory that stays as it is until it has arrived and was used.
  void answer(bytes data) {
    check(!in_flight_.full(), "there is room for what is in flight");
    in_flight_.push(data);
  }
  /// By the peer: nothing comes after what is in flight.
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

/// What a client reads from: the connection, and what is left of the segment that came last.
class reader {
 public:
  explicit reader(connection& from) : from_(from) {}

  /// What is there, and if that is nothing a wait for more. Empty at the end of the stream.
  [[nodiscard]] bytes available() {
    if (rest_.empty()) {
      rest_ = from_.receive();
    }
    return rest_;
  }
  void consume(std::size_t size) { rest_ = rest_.subspan(size); }

  /// At most so many of the bytes to come, without a copy.
  [[nodiscard]] bytes take(std::size_t most) {
    const bytes here = available();
    const bytes taken = here.first(std::min(most, here.size()));
    consume(taken.size());
    return taken;
  }

  /// Copies as many bytes as there is room for; false when the stream ends before.
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
