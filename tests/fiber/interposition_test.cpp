// The core replaces no function of the C library. Programs ask for those that do.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "pirn/fiber/runtime.hpp"

namespace {

TEST(interposition, functions_of_the_c_library_stay_its_own) {
#if defined(PIRN_ASAN) || defined(PIRN_TSAN)
  GTEST_SKIP() << "sanitizers replace them";
#endif
  pirn::runtime({.workers = 1}).run([] {});
  for (const char* const name :
       {"pthread_mutex_lock", "pthread_mutex_trylock", "pthread_mutex_unlock", "sigaction", "signal"}) {
    void* const found = dlsym(RTLD_DEFAULT, name);
    ASSERT_NE(found, nullptr) << name;
    Dl_info where{};
    ASSERT_NE(dladdr(found, &where), 0) << name;
    EXPECT_NE(std::string(where.dli_fname).find("libc.so"), std::string::npos) << name << " of " << where.dli_fname;
  }
}

}  // namespace
