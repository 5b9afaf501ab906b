// Three producers, two consumers and a channel between them; the main thread gathers the result under a mutex.
#include <cstdio>
#include <map>
#include <mutex>
#include <string>

#include "pirn/fiber/runtime.hpp"
#include "pirn/sync/channel.hpp"
#include "pirn/sync/mutex.hpp"
#include "pirn/sync/wait_group.hpp"

int main() {
  pirn::channel<std::string> words(4);  // a producer waits while four words are in it
  pirn::wait_group producing;
  pirn::wait_group consuming;
  pirn::mutex lock;
  std::map<std::string, int> count;
  pirn::runtime runtime({.workers = 2});  // destroyed first: it waits for its fibers, which use the objects above

  for (const char* word : {"fiber", "stack", "yield"}) {
    producing.add();
    runtime
        .spawn([&, word] {
          for (int i = 0; i < 1000; ++i) {
            if (!words.send(word)) {
              break;  // closed, or this fiber was asked to stop
            }
          }
          producing.done();
        })
        .detach();
  }
  for (int i = 0; i < 2; ++i) {
    consuming.add();
    runtime
        .spawn([&] {
          for (const std::string& word : words) {  // until the channel is closed and empty
            const std::lock_guard guard(lock);
            ++count[word];
          }
          consuming.done();
        })
        .detach();
  }

  // Plain threads wait as fibers do, and may give up at a deadline.
  const auto deadline = pirn::clock::now() + std::chrono::seconds(10);
  if (!producing.wait(deadline)) {
    std::puts("too slow");
  }
  words.close();
  if (!consuming.wait()) {
    return 1;
  }
  for (const auto& [word, times] : count) {
    std::printf("%s %d\n", word.c_str(), times);
  }
}
