// Shared by pirn's own implementations: coroutines of one type, on stacks of one source.
#pragma once

#include "aco.hpp"

namespace bench::aco {

/// `Program` is a type of the program, in its unnamed namespace. The body then is in that namespace too, so the
/// compiler knows that no other code calls it.
template <typename Coroutine, typename Source, typename Program>
class coroutines {
 public:
  template <typename... Arguments>
  explicit coroutines(const setting& what, const Arguments&... arguments)
      : make_(with_bytes_for(what.image,
                             [&what](auto bytes) -> maker {
                               constexpr std::size_t size = decltype(bytes)::value;
                               return what.dirty ? &make<size, true> : &make<size, false>;
                             })),
        source_(arguments...),
        all_(what.coroutines) {}

  void create(std::uint64_t i) { all_[i] = make_(source_); }
  void resume(std::uint64_t i) { all_[i].resume(); }
  /// Lets it run to its end, as is right for a coroutine that is no longer needed: unwinding a suspended one takes
  /// longer.
  void destroy(std::uint64_t i) {
    ending_ = true;
    all_[i].resume();
    all_[i] = Coroutine();
  }

 private:
  using maker = Coroutine (*)(Source& source);
  template <std::size_t Bytes, bool Dirty>
  static Coroutine make(Source& source) {
    return Coroutine(source, [](typename Coroutine::yield& yield) {
      body<Bytes, Dirty>([&yield]() __attribute__((always_inline)) {
        yield();
        return !ending_;
      });
    });
  }
  static inline bool ending_ = false;
  maker make_;
  Source source_;
  std::vector<Coroutine> all_;
};

}  // namespace bench::aco
