// Prints the lines that are added to a log, across its rotation, as `tail -F`. Ends after COUNT bytes, or on SIGINT.
//     log_follower FILE [COUNT]
#include <sys/inotify.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "pirn/fiber/runtime.hpp"
#include "pirn/io/file.hpp"

namespace {

/// Prints what the file has got since; returns how many bytes.
std::size_t print_news(pirn::file::cursor& from) {
  char text[4096];
  const std::uint64_t before = from.offset();
  for (auto got = from.read(text, sizeof text); got && *got != 0; got = from.read(text, sizeof text)) {
    std::fwrite(text, 1, *got, stdout);
  }
  std::fflush(stdout);
  return from.offset() - before;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: log_follower FILE [COUNT]\n");
    return EXIT_FAILURE;
  }
  const std::filesystem::path path = std::filesystem::absolute(argv[1]);
  std::size_t left = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : ~std::size_t{0};
  return pirn::runtime({.workers = 1}).run([&] {
    pirn::descriptor changes(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    // The folder is watched, so that a new file of the same name is noticed too.
    if (::inotify_add_watch(changes.native(), path.parent_path().c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0) {
      std::perror("log_follower");
      return EXIT_FAILURE;
    }
    pirn::file log;
    pirn::file::cursor reader(log);
    for (;;) {
      auto newest = pirn::file::open(path.string());
      left -= std::min(left, print_news(reader));  // what a renamed file got before the new one was made comes first
      if (newest && !log.is_same(*newest)) {
        log = std::move(*newest);
        reader = pirn::file::cursor(log);
        continue;
      }
      alignas(::inotify_event) char events[4096];
      if (left == 0 || !changes.read(events, sizeof events)) {
        return EXIT_SUCCESS;
      }
    }
  });
}
