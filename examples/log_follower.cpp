// Prints a log, and the lines that are added to it, also after it was rotated or emptied, as `tail -n +1 -F`.
//     log_follower FILE
#include <sys/inotify.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "pirn/fiber/runtime.hpp"
#include "pirn/io/file.hpp"

namespace {

/// Prints what the file has got since.
void print_news(pirn::file& log, pirn::file::cursor& from) {
  if (const auto size = log.size(); size && *size < from.offset()) {
    from = pirn::file::cursor(log);  // it was emptied
  }
  char text[4096];
  for (auto got = from.read(text, sizeof text); got && *got != 0; got = from.read(text, sizeof text)) {
    std::fwrite(text, 1, *got, stdout);
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: log_follower FILE\n");
    return EXIT_FAILURE;
  }
  const std::filesystem::path path = std::filesystem::absolute(argv[1]);
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
      print_news(log, reader);  // what a renamed file got before the new one was made comes first
      if (newest && !log.is_same(*newest)) {
        log = std::move(*newest);
        reader = pirn::file::cursor(log);
        continue;
      }
      alignas(::inotify_event) char events[4096];
      if (const auto read = changes.read(events, sizeof events); !read) {
        std::fprintf(stderr, "log_follower: %s\n", read.error().message().c_str());
        return EXIT_FAILURE;
      }
    }
  });
}
