// Directories: listing, and the names of files.
#include "pirn/io/directory.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "pirn/fiber/runtime.hpp"
#include "pirn/io/file.hpp"

namespace {

using pirn::directory_entry;

std::vector<std::string> names_of(const std::vector<directory_entry>& entries) {
  std::vector<std::string> names;
  for (const directory_entry& entry : entries) {
    names.push_back(entry.path);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void use_of_a_folder() {
  using names = std::vector<std::string>;
  char name[] = "/tmp/pirn_directory_XXXXXX";
  const std::string root = ::mkdtemp(name);
  EXPECT_TRUE(pirn::create_directory(root + "/sub"));
  EXPECT_EQ(pirn::create_directory(root + "/sub").error(), std::errc::file_exists);
  EXPECT_TRUE(pirn::file::open(root + "/sub/new",
                               {.access = pirn::file::access::write, .create = pirn::file::create::always_new}));
  std::filesystem::create_symlink(root, root + "/circle");
  EXPECT_EQ(names_of(pirn::list_directory(root).value()), (names{"circle", "sub"}));
  const auto all = pirn::list_directory(root, pirn::directory_entry::depth::all).value();
  EXPECT_EQ(names_of(all), (names{"circle", "sub", "sub/new"}));
  for (const directory_entry& entry : all) {
    EXPECT_EQ(entry.kind, entry.path == "circle" ? directory_entry::type::link
                          : entry.path == "sub"  ? directory_entry::type::directory
                                                 : directory_entry::type::file);
  }
  EXPECT_EQ(pirn::list_directory(root, pirn::directory_entry::depth::all, 2).error(), std::errc::value_too_large);
  EXPECT_TRUE(pirn::rename_path(root + "/sub/new", root + "/old"));
  EXPECT_EQ(names_of(pirn::list_directory(root).value()), (names{"circle", "old", "sub"}));
  EXPECT_EQ(pirn::rename_path(root + "/none", root + "/x").error().message(),
            "rename " + root + "/none to " + root + "/x: No such file or directory");
  const auto astray = pirn::rename_path(root + "/old", root + "/none/new");
  ASSERT_FALSE(astray);
  EXPECT_EQ(astray.error().path, root + "/old");
  EXPECT_EQ(astray.error().target, root + "/none/new");
  EXPECT_EQ(pirn::remove_path(root).error(), std::errc::directory_not_empty);
  for (const char* each : {"/circle", "/old", "/sub", ""}) {
    EXPECT_TRUE(pirn::remove_path(root + each)) << each;
  }
  EXPECT_EQ(pirn::list_directory(root).error().message(), "list " + root + ": No such file or directory");
  EXPECT_EQ(pirn::remove_path(std::string_view("a\0b", 3)).error(), std::errc::invalid_argument);
  EXPECT_EQ(pirn::remove_path("/tmp", std::chrono::steady_clock::now()).error(), pirn::io_error::timed_out);
}

TEST(directory, is_made_listed_renamed_and_removed) {
  {
    SCOPED_TRACE("fiber");
    pirn::runtime({.workers = 1}).run(use_of_a_folder);
  }
  SCOPED_TRACE("thread");
  use_of_a_folder();
}

/// A folder of many folders, which is removed with them.
struct tree {
  explicit tree(int folders) {
    char name[] = "/tmp/pirn_tree_XXXXXX";
    root = ::mkdtemp(name);
    for (int i = 0; i < folders; ++i) {
      std::filesystem::create_directory(root + "/" + std::to_string(i));
    }
  }
  ~tree() { std::filesystem::remove_all(root); }
  std::string root;
};

TEST(directory, of_a_large_tree_is_listed_until_a_stop) {
  pirn::runtime({.workers = 1}).run([] {
    const tree large(40);
    EXPECT_EQ(pirn::list_directory(large.root, directory_entry::depth::all).value().size(), 40u);
    pirn::fiber lists = pirn::spawn([&] {
      const auto found = pirn::list_directory(large.root, directory_entry::depth::all);
      EXPECT_TRUE(!found && found.error() == pirn::io_error::stopped && found.error().path == large.root);
    });
    pirn::this_fiber::yield();  // it has begun
    lists.request_stop();
    lists.join();
  });
}

TEST(directory, that_cannot_be_read_is_named) {
  const tree with(1);
  const std::string inner = with.root + "/0";
  ::chmod(with.root.c_str(), 0755);
  ::chmod(inner.c_str(), 0);
  const bool privileged = ::geteuid() == 0;
  if (privileged) {
    ::setfsuid(65534);
  }
  for (const std::string& root : {with.root, with.root + "/"}) {
    const auto found = pirn::list_directory(root, directory_entry::depth::all);
    EXPECT_TRUE(!found && found.error().message() == "list " + inner + ": Permission denied");
  }
  if (privileged) {
    ::setfsuid(0);
  }
  ::chmod(inner.c_str(), 0700);
  const auto too_many = pirn::list_directory(with.root, directory_entry::depth::all, 0);
  EXPECT_TRUE(!too_many && too_many.error().path == with.root);
}

}  // namespace
