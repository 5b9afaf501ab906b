// Callbacks as written by hand: an object for each request, kept and reused, and a function for the step after each
// wait. The object holds everything that outlives a wait.
#include "kv.hpp"

namespace {

struct callback {
  void (*done)(callback&, int error) = nullptr;
  void complete(int error) { done(*this, error); }
};
using server = bench::server<callback>;

class service {
 public:
  explicit service(server& of) : server_(of) {}

  void begin(std::string_view line) { serve(take(), line); }

 private:
  struct operation : callback {
    explicit operation(service& owner) : of(owner) {}
    service& of;
    operation* next = nullptr;  // in the list of free operations
    bench::request asked;
    unsigned scanned = 0;
  };

  operation& take() {
    if (free_ == nullptr) {
      return *new operation(*this);
    }
    return *std::exchange(free_, free_->next);
  }
  void serve(operation& one, std::string_view line) {
    one.asked = bench::parse(line);
    switch (one.asked.what) {
      case bench::kind::get:
        return wait(one, got);
      case bench::kind::set:
        return wait(one, page_to_set_read);
      case bench::kind::scan:
        one.scanned = 0;
        return wait(one, page_scanned);
    }
  }
  /// Continues an operation that has served one request with the next one.
  void go_on(operation& one) {
    if (const std::string_view line = server_.next(); !line.empty()) {
      return serve(one, line);
    }
    one.next = free_;
    free_ = &one;
  }
  void wait(operation& one, void (*then)(callback&, int)) {
    one.done = then;
    server_.disk.submit(one);
  }
  static operation& resumed(callback& what, int error) {
    server::look_at(error);
    return static_cast<operation&>(what);
  }

  static void got(callback& what, int error) {
    operation& one = resumed(what, error);
    server& of = one.of.server_;
    of.answer_value(one.asked.key, of.read(one.asked.key));
    of.answer_end();
    one.of.go_on(one);
  }
  static void page_to_set_read(callback& what, int error) {
    operation& one = resumed(what, error);
    one.of.server_.write(one.asked.key, one.asked.value);
    one.of.wait(one, log_written);
  }
  static void log_written(callback& what, int error) {
    operation& one = resumed(what, error);
    one.of.server_.answer_stored(one.asked.key);
    one.of.go_on(one);
  }
  static void page_scanned(callback& what, int error) {
    operation& one = resumed(what, error);
    server& of = one.of.server_;
    const bench::key_text key(bench::key_number(one.asked.key) + one.scanned);
    of.answer_value(key, of.read(key));
    if (++one.scanned < bench::scan_length) {
      return one.of.wait(one, page_scanned);
    }
    of.answer_end();
    one.of.go_on(one);
  }

  server& server_;
  operation* free_ = nullptr;
};

}  // namespace

int main() {
  const auto kept = std::make_unique<server>();
  service kv(*kept);
  bench::callbacks_rows(
      "callback", *kept, [&](std::string_view line) { kv.begin(line); }, "a function for what follows each wait");
}
