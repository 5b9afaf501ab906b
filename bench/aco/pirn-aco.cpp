// A program for libaco's interface, here built with pirn's header. Built with libaco's header and sources it measures
// libaco.
#include <aco.h>

#include <vector>

#include "aco.hpp"

#ifndef ACO_BENCH_IMPL
#define ACO_BENCH_IMPL "pirn-aco"
#define ACO_BENCH_NOTE "through aco.h"
#endif

namespace {

template <std::size_t Bytes, bool Dirty>
void coroutine() {
  bench::aco::body<Bytes, Dirty>([]() __attribute__((always_inline)) {
    aco_yield();
    return true;
  });
}

class kind {
 public:
  explicit kind(const bench::aco::setting& what)
      : coroutine_(bench::aco::with_bytes_for(what.image,
                                              [&what](auto bytes) -> aco_cofuncp_t {
                                                constexpr std::size_t size = decltype(bytes)::value;
                                                return what.dirty ? &coroutine<size, true> : &coroutine<size, false>;
                                              })),
        all_(what.coroutines) {
    aco_thread_init(nullptr);
    main_ = aco_create(nullptr, nullptr, 0, nullptr, nullptr);
    shared_ = aco_share_stack_new(0);
  }

  void create(std::uint64_t i) { all_[i] = aco_create(main_, shared_, 0, coroutine_, nullptr); }
  void resume(std::uint64_t i) { aco_resume(all_[i]); }
  void destroy(std::uint64_t i) { aco_destroy(all_[i]); }

 private:
  aco_cofuncp_t coroutine_;
  std::vector<aco_t*> all_;
  aco_t* main_ = nullptr;
  aco_share_stack_t* shared_ = nullptr;
};

}  // namespace

int main() { bench::aco::rows<kind>(ACO_BENCH_IMPL, ACO_BENCH_NOTE); }
