// Loads the plugin that its argument names and calls it in a fiber, beside another fiber.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "pirn/fiber/runtime.hpp"
#include "pirn/sync/mutex.hpp"

namespace {

int failed(const char* what) {
  std::fprintf(stderr, "plugin_host: %s\n", what);
  return EXIT_FAILURE;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    return failed("the plugin's file is missing");
  }
  pirn::runtime runtime({.workers = 1});
  return runtime.run([&] {
    void* const plugin = ::dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (plugin == nullptr) {
      return failed(::dlerror());
    }
    const auto work = reinterpret_cast<int (*)(pirn::mutex*, std::string*)>(::dlsym(plugin, "work"));
    if (work == nullptr) {
      return failed("the plugin has no work");
    }
    pirn::mutex lock;
    std::string order;
    pirn::fiber beside = pirn::spawn([&] {
      for (int i = 0; i < 3; ++i) {
        order.append("host ");
        pirn::this_fiber::yield();
      }
    });
    const int sum = work(&lock, &order);
    beside.join();
    ::dlclose(plugin);
    if (sum != 10 || order != "plugin host plugin host plugin host from a fiber") {
      return failed(order.c_str());
    }
    return EXIT_SUCCESS;
  });
}
