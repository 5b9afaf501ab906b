// The store by pirn: a fiber for each connection. The first set that finds the log at rest writes it for all that come
// meanwhile.
#pragma once

#include <mutex>

#include "../engine_pirn.hpp"
#include "pirn/io/file.hpp"
#include "pirn/net/acceptor.hpp"
#include "pirn/sync/condition_variable.hpp"
#include "pirn/sync/mutex.hpp"
#include "store.hpp"

namespace bench {

class log_file {
 public:
  explicit log_file(pirn::file opened) : file_(std::move(opened)) {}

  /// Returns when the record is on the disk.
  void commit(const request& asked) {
    std::unique_lock lock(mutex_);
    store::record(asked, gathered_);
    const std::uint64_t mine = gathering_;
    while (written_ <= mine) {
      if (writing_) {
        static_cast<void>(changed_.wait(lock));
        continue;
      }
      writing_ = true;
      const std::string records = std::exchange(gathered_, {});
      const std::uint64_t now = gathering_++;
      lock.unlock();
      const bool kept = file_.append(records) && file_.sync(pirn::sync_scope::data);
      check(kept, "the log is written");
      lock.lock();
      writing_ = false;
      written_ = now + 1;
      changed_.notify_all();
    }
  }

 private:
  pirn::file file_;
  pirn::mutex mutex_;
  pirn::condition_variable changed_;
  std::string gathered_;
  std::uint64_t gathering_ = 0;  ///< the number of the batch that is gathered
  std::uint64_t written_ = 0;    ///< how many batches are on the disk
  bool writing_ = false;
};

inline void serve_client(pirn::tcp_stream& stream, store& data, log_file& log) {
  std::string answers;
  while (auto view = stream.lend()) {
    if (view->empty()) {
      return;
    }
    std::string_view unread = view->text();
    for (std::string_view line = take_line(unread); !line.empty(); line = take_line(unread)) {
      const request asked = parse(line);
      if (asked.what == kind::set) {
        log.commit(asked);
        data.apply(asked.key, asked.value, answers);
      } else {
        data.answer(asked, answers);
      }
    }
    view->consume(view->bytes().size() - unread.size());
    if (!answers.empty() && !stream.write(answers)) {
      return;
    }
    answers.clear();
  }
}

inline int serve_store(pirn::engine_kind engine, const char* address) {
  pirn::runtime runtime({.workers = 1, .engine = engine});
  return runtime.run([address] {
    const auto port = static_cast<std::uint16_t>(std::atoi(address));
    auto listener = pirn::tcp_listener::listen({pirn::ip_address::loopback_v4(), port}, {.backlog = 4096});
    auto opened = pirn::file::open(
        log_path(), {.access = pirn::file::access::write, .create = pirn::file::create::if_missing, .append = true});
    if (!listener || !opened) {
      std::fprintf(stderr, "cannot listen, or open the log\n");
      return EXIT_FAILURE;
    }
    store data;
    log_file log(std::move(*opened));
    pirn::acceptor clients;
    static_cast<void>(clients.run(*listener, [&](pirn::tcp_stream stream) { serve_client(stream, data, log); }));
    return EXIT_SUCCESS;
  });
}

}  // namespace bench
