// static_files: types, times, ranges, conditions, and files that must not be served.

#include "pirn/http/static_files.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "http/support.hpp"

namespace {

using namespace test;
namespace http = pirn::http;
namespace fs = std::filesystem;

/// A folder to serve, next to a file that must never be served.
class served_folder {
 public:
  served_folder() {
    char name[] = "/tmp/pirn_static_files_XXXXXX";
    base_ = ::mkdtemp(name);
    root = base_ / "root";
    fs::create_directories(root / "sub" / "deeper");
    fs::create_directories(root / "odd" / "index.html");
    write(base_ / "secret", "secret");
    write(root / "index.html", "<p>index</p>");
    write(root / "sub" / "index.html", "<p>sub</p>");
    write(root / "a b.txt", "blank");
    write(root / "data.bin", "0123456789");
    write(root / "..dots", "dots");
    write(root / "empty", "");
    std::string large(1 << 20, '\0');
    for (std::size_t i = 0; i < large.size(); ++i) {
      large[i] = static_cast<char>(i * 7 + i / 251);
    }
    write(root / "large", large);
    fs::create_symlink("data.bin", root / "inside");
    fs::create_symlink("../secret", root / "outside");
    fs::create_symlink(base_, root / "folder");
    fs::create_symlink("/etc/passwd", root / "absolute");
    fs::create_symlink("loop", root / "loop");
    ::mkfifo((root / "pipe").c_str(), 0600);
    write(root / "closed", "closed");
    fs::permissions(root / "closed", fs::perms::none);
  }
  ~served_folder() { fs::remove_all(base_); }
  served_folder(const served_folder&) = delete;
  served_folder& operator=(const served_folder&) = delete;

  static void write(const fs::path& where, std::string_view content) { std::ofstream(where) << content; }
  static std::string read(const fs::path& where) {
    std::ifstream file(where);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  fs::path root;

 private:
  fs::path base_;
};

template <class Body>
void with_files(Body body) {
  const served_folder folder;
  const http::static_files files(folder.root.string());
  pirn::runtime({.workers = 1}).run([&] {
    running_server running(files);
    client c(running.at);
    body(folder, c);
  });
}

TEST(static_files, serves_files_with_their_type) {
  with_files([](const served_folder& folder, client& c) {
    reply got = c.get("/");
    EXPECT_EQ(got.status, 200);
    EXPECT_EQ(got.body, "<p>index</p>");
    EXPECT_EQ(got.field("Content-Type"), "text/html; charset=utf-8");
    EXPECT_EQ(got.field("Accept-Ranges"), "bytes");
    EXPECT_EQ(c.get("/sub/?x=..").body, "<p>sub</p>");
    EXPECT_EQ(c.get("//sub//").body, "<p>sub</p>");
    EXPECT_EQ(c.get("/a%20b.txt").body, "blank");
    EXPECT_EQ(c.get("/inside").body, "0123456789");
    EXPECT_EQ(c.get("/..dots").body, "dots");
    EXPECT_EQ(c.get("/./data.bin").body, "0123456789");
    EXPECT_EQ(c.get("/empty").status, 200);
    EXPECT_EQ(c.get("/large").body, served_folder::read(folder.root / "large"));
    got = c.ask("HEAD /large HTTP/1.1\r\nHost: h\r\n\r\n", false);
    EXPECT_EQ(got.field("Content-Length"), "1048576");
    got = c.get("//sub");
    EXPECT_EQ(got.status, 301);
    EXPECT_EQ(got.field("Location"), "/sub/");
    EXPECT_EQ(c.get("/sub?a=1&b=/").field("Location"), "/sub/?a=1&b=/");
    EXPECT_EQ(c.get("//sub/deeper?").field("Location"), "/sub/deeper/?");
  });
}

TEST(static_files, a_file_from_the_future_was_modified_no_later_than_now) {
  with_files([](const served_folder& folder, client& c) {
    const auto set = [&](std::time_t when) {
      const ::timespec times[2] = {{when, 0}, {when, 0}};
      ASSERT_EQ(::utimensat(AT_FDCWD, (folder.root / "data.bin").c_str(), times, 0), 0);
    };
    set(::time(nullptr) + 1'000'000);
    const auto got = c.get("/data.bin");
    EXPECT_LE(http::parse_date(got.field("Last-Modified")), http::parse_date(got.field("Date")));
    set(-1'000'000'000);
    EXPECT_EQ(c.get("/data.bin").field("Last-Modified"), "Sun, 24 Apr 1938 22:13:20 GMT");
  });
}

TEST(static_files, nothing_outside_the_folder_is_served) {
  with_files([](const served_folder&, client& c) {
    for (const char* target : {
             "/../secret",
             "/sub/../../secret",
             "/%2e%2e/secret",
             "/%2E%2e/secret",
             "/.%2e/secret",
             "/..%2fsecret",
             "/%2e%2e%2fsecret",
             "/sub/%2e%2e/%2e%2e/secret",
             "/sub/..",
             "/..",
             "/../root/data.bin",
             "//../secret",
             "/./../secret",
             "/outside",
             "/folder/secret",
             "/folder/root/data.bin",
             "/absolute",
             "/%2fetc/passwd",
             "//etc/passwd",
             "/%2f%2fetc%2fpasswd",
             "/..%5csecret",
             "/%252e%252e/secret",
             "/loop",
             "/sub/deeper/../../../secret",
             "/proc/self/root/etc/passwd",
         }) {
      const reply got = c.get(target);
      EXPECT_TRUE(got.status == 403 || got.status == 404) << target << ": " << got.status;
      EXPECT_EQ(got.body.find("secret"), std::string::npos) << target;
      EXPECT_EQ(got.body.find("root:"), std::string::npos) << target;
    }
    for (const char* target : {"/%", "/%2", "/%zz", "/%00", "/data.bin%00.html"}) {
      EXPECT_EQ(c.get(target).status, 400) << target;
    }
  });
}

TEST(static_files, what_is_no_readable_file_is_refused) {
  with_files([](const served_folder&, client& c) {
    EXPECT_EQ(c.get("/nothing").status, 404);
    EXPECT_EQ(c.get("/data.bin/").status, 404);
    EXPECT_EQ(c.get("/sub/deeper/").status, 404);
    EXPECT_EQ(c.get("/odd/").status, 404);
    EXPECT_EQ(c.get("/odd/index.html").field("Location"), "/odd/index.html/");
    EXPECT_EQ(c.get("/pipe").status, 403);
    if (::geteuid() != 0) {
      EXPECT_EQ(c.get("/closed").status, 403);
    }
    EXPECT_EQ(c.get("/" + std::string(5000, 'x')).status, 404);
    for (const char* method : {"POST", "DELETE", "OPTIONS", "BREW"}) {
      const reply got = c.ask(std::string(method) + " /data.bin HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nab");
      EXPECT_EQ(got.status, 405);
      EXPECT_EQ(got.field("Allow"), "GET, HEAD");
    }
    const reply whole = c.ask("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_EQ(whole.status, 204);
    EXPECT_EQ(whole.field("Allow"), "GET, HEAD, OPTIONS");
    EXPECT_EQ(c.get("/data.bin").status, 200);
  });
}

TEST(static_files, ranges) {
  with_files([](const served_folder& folder, client& c) {
    struct {
      const char* range;
      int status;
      const char* body;
      const char* content_range;
    } const cases[] = {
        {"bytes=0-0", 206, "0", "bytes 0-0/10"},
        {"bytes=2-4", 206, "234", "bytes 2-4/10"},
        {"bytes=7-", 206, "789", "bytes 7-9/10"},
        {"bytes=7-99999999999999", 206, "789", "bytes 7-9/10"},
        {"bytes=-3", 206, "789", "bytes 7-9/10"},
        {"bytes=-30", 206, "0123456789", "bytes 0-9/10"},
        {"bytes=10-", 416, nullptr, "bytes */10"},
        {"bytes=-0", 416, nullptr, "bytes */10"},
        {"bytes=4-2", 200, "0123456789", ""},
        {"bytes=0-1,3-4", 200, "0123456789", ""},
        {"bytes=", 200, "0123456789", ""},
        {"bytes=a-b", 200, "0123456789", ""},
        {"bytes=1-18446744073709551616", 206, "123456789", "bytes 1-9/10"},
        {"bytes=0-99999999999999999999999", 206, "0123456789", "bytes 0-9/10"},
        {"bytes=99999999999999999999999-", 416, nullptr, "bytes */10"},
        {"bytes=-99999999999999999999999", 206, "0123456789", "bytes 0-9/10"},
        {"bytes=99999999999999999999999x-", 200, "0123456789", ""},
        {"Bytes=2-4", 206, "234", "bytes 2-4/10"},
        {"byte=2-4", 200, "0123456789", ""},
        {"lines=1-2", 200, "0123456789", ""},
    };
    for (const auto& wanted : cases) {
      SCOPED_TRACE(wanted.range);
      const reply got = c.get("/data.bin", "Range: " + std::string(wanted.range) + "\r\n");
      EXPECT_EQ(got.status, wanted.status);
      EXPECT_EQ(got.field("Content-Range"), wanted.content_range);
      if (wanted.body != nullptr) {
        EXPECT_EQ(got.body, wanted.body);
      }
    }
    EXPECT_EQ(c.get("/empty", "Range: bytes=0-0\r\n").status, 416);
    const std::string large = served_folder::read(folder.root / "large");
    EXPECT_EQ(c.get("/large", "Range: bytes=1000-900000\r\n").body, large.substr(1000, 899'001));
  });
}

TEST(static_files, conditions) {
  with_files([](const served_folder&, client& c) {
    const reply first = c.get("/data.bin");
    const std::string tag = first.field("ETag");
    const std::string date = first.field("Last-Modified");
    const auto status = [&](const std::string& headers) { return c.get("/data.bin", headers).status; };
    EXPECT_EQ(status("If-None-Match: " + tag + "\r\n"), 304);
    EXPECT_EQ(status("If-None-Match: \"x\", W/" + tag + "\r\n"), 304);
    EXPECT_EQ(status("If-None-Match: *\r\n"), 304);
    EXPECT_EQ(status("If-None-Match: \"x\"\r\nIf-Modified-Since: " + date + "\r\n"), 200);
    EXPECT_EQ(status("If-Modified-Since: " + date + "\r\n"), 304);
    EXPECT_EQ(status("If-Modified-Since: Thu, 01 Jan 1970 00:00:00 GMT\r\n"), 200);
    EXPECT_EQ(status("If-Modified-Since: yesterday\r\n"), 200);
    EXPECT_EQ(status("If-Range: " + tag + "\r\nRange: bytes=0-1\r\n"), 206);
    EXPECT_EQ(status("If-Range: \"x\"\r\nRange: bytes=0-1\r\n"), 200);
    EXPECT_EQ(status("If-Range: " + date + "\r\nRange: bytes=0-1\r\n"), 206);
    EXPECT_EQ(status("If-Range: nonsense\r\nRange: bytes=0-1\r\n"), 200);
  });
}

TEST(static_files, a_folder_that_is_none_is_an_error) {
  EXPECT_THROW(http::static_files("/nonexistent"), std::system_error);
  EXPECT_THROW(http::static_files("/etc/passwd"), std::system_error);
}

TEST(static_files, decode_path) {
  EXPECT_EQ(http::decode_path("/a%2Fb%20c"), "/a/b c");
  EXPECT_EQ(http::decode_path("/a..b/...").value(), "/a..b/...");
  EXPECT_EQ(http::decode_path("/%2e%2E").error(), 403);
  EXPECT_EQ(http::decode_path("").error(), 400);
  EXPECT_EQ(http::decode_path("/%0").error(), 400);
}

TEST(static_files, type_of) {
  EXPECT_EQ(http::type_of("x/y.HTML"), "text/html; charset=utf-8");
  EXPECT_EQ(http::type_of("archive.tar.gz"), "application/gzip");
  EXPECT_EQ(http::type_of("Makefile"), "application/octet-stream");
}

}  // namespace
