// The conditions on which a request makes its answer depend, and the order in which they are evaluated.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "http/support.hpp"
#include "pirn/http/static_files.hpp"

namespace {

using namespace test;
namespace http = pirn::http;
namespace fs = std::filesystem;

constexpr std::int64_t when = 784111777;  // Sun, 06 Nov 1994 08:49:37 GMT

class conditions : public testing::Test {
 protected:
  conditions() {
    char name[] = "/tmp/pirn_conditions_XXXXXX";
    root_ = ::mkdtemp(name);
    std::ofstream(root_ / "data") << "0123456789";
    fs::create_directory(root_ / "folder");
    const timespec times[] = {{when, 0}, {when, 0}};
    EXPECT_EQ(::utimensat(AT_FDCWD, (root_ / "data").c_str(), times, 0), 0);
  }
  ~conditions() override { fs::remove_all(root_); }

  struct row {
    std::string fields;
    int status;
  };
  void expect(const std::vector<row>& rows, const std::string& target = "/data") {
    pirn::runtime({.workers = 1}).run([&] {
      running_server running(http::static_files(root_.string()), {.linger_timeout = 200ms});
      client c(running.at);
      for (const row& each : rows) {
        SCOPED_TRACE(each.fields);
        const reply got = c.get(target, each.fields);
        EXPECT_EQ(got.status, each.status);
        const reply head = c.ask("HEAD " + target + " HTTP/1.1\r\nHost: h\r\n" + each.fields + "\r\n", false);
        EXPECT_EQ(head.status, each.status == 206 || each.status == 416 ? 200 : each.status) << "HEAD";
        EXPECT_EQ(got.field("ETag").empty(), each.status == 412 || each.status == 404) << got.head;
        if (each.status == 200) {
          EXPECT_EQ(got.body, "0123456789");
        }
      }
    });
  }
  std::string tag() {
    struct ::stat about{};
    EXPECT_EQ(::stat((root_ / "data").c_str(), &about), 0);
    std::string found;
    pirn::runtime({.workers = 1}).run([&] {
      running_server running(http::static_files(root_.string()), {.linger_timeout = 200ms});
      found = client(running.at).get("/data").field("ETag");
    });
    return found;
  }

  fs::path root_;
};

const std::string same = "Sun, 06 Nov 1994 08:49:37 GMT";
const std::string before = "Sun, 06 Nov 1994 08:49:36 GMT";
const std::string later = "Mon, 07 Nov 1994 08:49:37 GMT";

TEST_F(conditions, if_match) {
  const std::string t = tag();
  expect({{"If-Match: " + t + "\r\n", 200},
          {"If-Match: *\r\n", 200},
          {"If-Match: \"x\"\r\n", 412},
          {"If-Match: \"x\", " + t + "\r\n", 200},
          {"If-Match: \"a,b\",\"" + t.substr(1) + "\r\n", 200},
          {"If-Match: \"x\"\r\nIf-Match: " + t + "\r\n", 200},
          {"If-Match: W/" + t + "\r\n", 412},  // the strong comparison
          {"If-Match: \"x" + t.substr(1) + "\r\n", 412},
          {"If-Match: " + t.substr(1, t.size() - 2) + "\r\n", 412},
          {"If-Match: \"\\\"," + t + "\r\n", 200},
          {"If-Match: \"x" + t + "\"\r\n", 412},  // no list of tags, but a text that contains one
          {"If-Match:\r\n", 412},
          {"If-Match: \"x\"\r\nRange: bytes=0-1\r\n", 412},
          {"If-Match: " + t + "\r\nRange: bytes=0-1\r\n", 206},
          {"If-Match: " + t + "\r\nRange: bytes=10-\r\n", 416},
          {"If-Match: \"x\"\r\nRange: bytes=10-\r\n", 412}});
}

TEST_F(conditions, if_unmodified_since) {
  expect({{"If-Unmodified-Since: " + same + "\r\n", 200},
          {"If-Unmodified-Since: " + later + "\r\n", 200},
          {"If-Unmodified-Since: " + before + "\r\n", 412},
          {"If-Unmodified-Since: " + before + "\r\nRange: bytes=0-1\r\n", 412},
          {"If-Unmodified-Since: " + same + "\r\nRange: bytes=0-1\r\n", 206},
          {"If-Unmodified-Since: Sunday, 06-Nov-94 08:49:36 GMT\r\n", 412},
          {"If-Unmodified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\n", 200},
          {"If-Unmodified-Since: Sun Nov  6 08:49:36 1994\r\n", 412},
          {"If-Unmodified-Since: Sun Nov  6 08:49:37 1994\r\n", 200},
          {"If-Unmodified-Since: Sun, 06 Nov 1994 08:49:36\r\n", 200},      // a text that is no date is no condition
          {"If-Unmodified-Since: Sun, 31 Nov 1993 08:49:36 GMT\r\n", 200},  // nor is a date that no calendar has
          {"If-Unmodified-Since: 0\r\n", 200},
          {"If-Unmodified-Since: " + before + "\r\nIf-Unmodified-Since: " + before + "\r\n", 200}});
}

TEST_F(conditions, if_none_match) {
  const std::string t = tag();
  expect({{"If-None-Match: " + t + "\r\n", 304},
          {"If-None-Match: W/" + t + "\r\n", 304},
          {"If-None-Match: *\r\n", 304},
          {"If-None-Match: \"x\" ,W/\"y\"\t, " + t + "\r\n", 304},
          {"If-None-Match: ,, " + t + "\r\n", 304},
          {"If-None-Match: \"x\"\r\nIf-None-Match: " + t + "\r\n", 304},
          {"If-None-Match: \"x\"\r\n", 200},
          {"If-None-Match: w/" + t + "\r\n", 200},
          {"If-None-Match: \"x, " + t + "\r\n", 200},
          {"If-None-Match: \"x " + t.substr(1) + "\r\n", 200},
          {"If-None-Match:\r\n", 200},
          {"If-None-Match: " + t + "\r\nRange: bytes=0-1\r\n", 304},
          {"If-None-Match: \"x\"\r\nRange: bytes=0-1\r\n", 206}});
}

TEST_F(conditions, if_modified_since) {
  expect({{"If-Modified-Since: " + same + "\r\n", 304},
          {"If-Modified-Since: " + later + "\r\n", 304},
          {"If-Modified-Since: " + before + "\r\n", 200},
          {"If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT\r\n", 304},
          {"If-Modified-Since: Sunday, 06-Nov-94 08:49:36 GMT\r\n", 200},
          {"If-Modified-Since: Sun Nov  6 08:49:37 1994\r\n", 304},
          {"If-Modified-Since: Sun Nov  6 08:49:36 1994\r\n", 200},
          {"If-Modified-Since: Tue, 31 Feb 2040 08:49:37 GMT\r\n", 200},
          {"If-Modified-Since: tomorrow\r\n", 200},
          {"If-Modified-Since: " + same + "\r\nIf-Modified-Since: " + same + "\r\n", 200},
          {"If-Modified-Since: " + same + "\r\nRange: bytes=0-1\r\n", 304}});
}

TEST_F(conditions, if_range) {
  const std::string t = tag();
  const std::string range = "\r\nRange: bytes=0-1\r\n";
  expect({{"If-Range: " + t + range, 206},
          {"If-Range: \"x\"" + range, 200},
          {"If-Range: W/" + t + range, 200},
          {"If-Range: \"x\", " + t + range, 200},
          {"If-Range: *" + range, 200},
          {"If-Range: " + same + range, 206},
          {"If-Range: Sun Nov  6 08:49:37 1994" + range, 206},
          {"If-Range: " + before + range, 200},
          {"If-Range: " + later + range, 200},
          {"If-Range: nonsense" + range, 200},
          {"If-Range: " + t + "\r\n", 200},
          {"If-Range: \"x\"\r\nRange: bytes=10-\r\n", 200}});
}

TEST_F(conditions, in_their_order) {
  const std::string t = tag();
  expect({{"If-Match: " + t + "\r\nIf-Unmodified-Since: " + before + "\r\n", 200},
          {"If-Match: \"x\"\r\nIf-Unmodified-Since: " + same + "\r\n", 412},
          {"If-Match: \"x\"\r\nIf-None-Match: " + t + "\r\n", 412},
          {"If-Match: " + t + "\r\nIf-None-Match: " + t + "\r\n", 304},
          {"If-Unmodified-Since: " + before + "\r\nIf-Modified-Since: " + same + "\r\n", 412},
          {"If-Unmodified-Since: " + same + "\r\nIf-Modified-Since: " + same + "\r\n", 304},
          {"If-None-Match: \"x\"\r\nIf-Modified-Since: " + same + "\r\n", 200},
          {"If-None-Match: " + t + "\r\nIf-Modified-Since: " + before + "\r\n", 304},
          {"If-None-Match: " + t + "\r\nIf-Range: " + t + "\r\nRange: bytes=0-1\r\n", 304},
          {"If-Match: " + t + "\r\nIf-Range: \"x\"\r\nRange: bytes=0-1\r\n", 200}});
  expect({{"If-Match: \"x\"\r\n", 404}, {"If-None-Match: *\r\n", 404}}, "/nothing");
}

}  // namespace
