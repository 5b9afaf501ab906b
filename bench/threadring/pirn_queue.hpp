// A wait queue in which to wait for the token.
#pragma once

#include "pirn/fiber/expert/inline_wait.hpp"
#include "pirn_fibers.hpp"

namespace bench {

/// The place where a process gets the token; any fiber of any worker could put it there.
class queue_place {
 public:
  PIRN_ALWAYS_INLINE void put(std::int64_t token) {
    queue_.lock();
    token_ = token;
    full_ = true;
    pirn::notify_one_inline(queue_);
  }
  PIRN_ALWAYS_INLINE std::int64_t take() {
    queue_.lock();
    if (full_) {
      queue_.unlock();
    } else {
      static constexpr pirn::wait_options for_token{.stoppable = false, .what = "the token"};
      pirn::wait_inline(queue_, for_token);
    }
    full_ = false;
    return token_;
  }

 private:
  pirn::wait_queue queue_;
  bool full_ = false;  // for one consumer: no put happens before it has passed the token on
  std::int64_t token_ = 0;
};

}  // namespace bench
