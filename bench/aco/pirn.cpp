// pirn's coroutines, each on a stack of its own, guarded and of 64 KiB: nothing is copied.
#include "aco.hpp"
#include "pirn/coro/coroutine.hpp"

namespace {

using coroutine = pirn::coroutine<void()>;

class kind {
 public:
  explicit kind(const bench::aco::setting& what)
      : make_(bench::aco::with_bytes_for(
            what.image,
            [](auto bytes) -> maker {
              return [](pirn::guarded_pool& stacks) {
                return coroutine(stacks, bench::input("STACK"), [](coroutine::yield& yield) {
                  bench::aco::body<decltype(bytes)::value>([&yield]() __attribute__((always_inline)) { yield(); });
                });
              };
            })),
        all_(what.coroutines) {}

  void create(std::uint64_t i) { all_[i] = make_(stacks_); }
  void resume(std::uint64_t i) { all_[i].resume(); }
  void destroy(std::uint64_t i) { all_[i] = coroutine(); }
  template <typename Random>
  void shuffle(Random& random) {
    std::shuffle(all_.begin(), all_.end(), random);
  }

 private:
  using maker = coroutine (*)(pirn::guarded_pool& stacks);
  maker make_;
  pirn::guarded_pool stacks_;
  std::vector<coroutine> all_;
};

}  // namespace

int main() {
  const bench::aco::setting what;
  bench::need_memory(what.coroutines * (4700 + what.image));
  bench::aco::rows<kind>("pirn", "each on a guarded stack of 64 KiB");
}
