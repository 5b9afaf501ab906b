// Headers, framing and dates of a message.

#include "pirn/http/message.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <ctime>
#include <stdexcept>
#include <vector>

namespace {

using namespace pirn::http;

TEST(request, finds_headers_in_any_case) {
  const std::vector<header> fields = {{"Host", "h"}, {"X-A", "1"}, {"x-a", "2"}};
  request asked;
  asked.headers = fields;
  EXPECT_EQ(asked.find("host"), "h");
  EXPECT_EQ(asked.find("X-a"), "1");
  EXPECT_FALSE(asked.find("X-"));
  asked.target = "/a/b?c=d?e";
  EXPECT_EQ(asked.path(), "/a/b");
}

TEST(response, refuses_to_be_split) {
  response answer;
  EXPECT_THROW(answer.header("X", "a\r\nSet-Cookie: b"), std::invalid_argument);
  EXPECT_THROW(answer.header("X", std::string_view("a\0b", 3)), std::invalid_argument);
  EXPECT_THROW(answer.header("X: y", "a"), std::invalid_argument);
  EXPECT_THROW(answer.header("", "a"), std::invalid_argument);
  EXPECT_NO_THROW(answer.header("X-Y", "a\tb \xc3\xa4"));
}

TEST(response, leaves_the_framing_to_the_server) {
  response answer;
  for (const char* name : {"Content-Length", "content-length", "Transfer-Encoding", "Connection", "Keep-Alive",
                           "Trailer", "Date", "SERVER"}) {
    EXPECT_THROW(answer.header(name, "1"), std::invalid_argument) << name;
  }
  EXPECT_NO_THROW(answer.header("Content-Language", "de"));
  for (const int code : {-99999, 0, 7, 100, 101, 199, 600, 1000}) {
    EXPECT_THROW(answer.status(code), std::invalid_argument) << code;
    EXPECT_THROW(answer.fail(code), std::invalid_argument) << code;
  }
  EXPECT_EQ(answer.status(599).status(), 599);
  EXPECT_EQ(answer.status(200).status(), 200);
}

TEST(date, is_written_and_read_as_rfc_9110_says) {
  EXPECT_EQ(format_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  EXPECT_EQ(format_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  for (const std::int64_t when : {0L, 784111777L, 951782400L, 4102444799L}) {
    EXPECT_EQ(parse_date(format_date(when)), when);
  }
  for (const char* text : {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                           "Sun Nov  6 08:49:37 1994", "Sun Nov 06 08:49:37 1994"}) {
    EXPECT_EQ(parse_date(text), 784111777) << text;
  }
  EXPECT_EQ(parse_date("Thu, 29 Feb 2024 23:59:59 GMT"), 1709251199);
  EXPECT_EQ(parse_date("Sat, 31 Dec 2016 23:59:60 GMT"), 1483228800);
  // Two digits mean the year that is at most 50 years ahead.
  const std::time_t now = std::time(nullptr);
  const int year = std::gmtime(&now)->tm_year + 1900;
  for (const int ahead : {-49, -1, 0, 1, 49}) {
    char text[64];
    std::snprintf(text, sizeof text, "Monday, 01-Jan-%02d 00:00:00 GMT", (year + ahead) % 100);
    std::tm wanted{};
    wanted.tm_mday = 1;
    wanted.tm_year = year + ahead - 1900;
    EXPECT_EQ(parse_date(text), ::timegm(&wanted)) << text;
  }
  for (const char* text : {"",
                           "Sun",
                           "Sun,",
                           "Sun, 06 Nov 1994 08:49:37",
                           "Sun, 06 Nov 1994 08:49:37 GMT ",
                           "Sun, 06 Nov 1994 08:49:37 UTC",
                           "Sun, 06 Nov 1994 08:49:37 gmt",
                           "Sun, 06 nov 1994 08:49:37 GMT",
                           "Sun, 06 Nuv 1994 08:49:37 GMT",
                           "Son, 06 Nov 1994 08:49:37 GMT",
                           "Sun, 6 Nov 1994 08:49:37 GMT",
                           "Sun,  6 Nov 1994 08:49:37 GMT",
                           "Sun, +6 Nov 1994 08:49:37 GMT",
                           "Sun, 00 Nov 1994 08:49:37 GMT",
                           "Sun, 31 Nov 1994 08:49:37 GMT",
                           "Sun, 32 Oct 1994 08:49:37 GMT",
                           "Wed, 29 Feb 2023 08:49:37 GMT",
                           "Sun, 06 Nov 94 08:49:37 GMT",
                           "Sun, 06 Nov -994 08:49:37 GMT",
                           "Sun, 06 Nov 1994 24:00:00 GMT",
                           "Sun, 06 Nov 1994 08:60:00 GMT",
                           "Sun, 06 Nov 1994 08:49:61 GMT",
                           "Sun, 06-Nov-94 08:49:37 GMT",
                           "Sunday, 06 Nov 1994 08:49:37 GMT",
                           "Sunday, 06-Nov-1994 08:49:37 GMT",
                           "Sun Nov 6 08:49:37 1994",
                           "Sun Nov  6 08:49:37 94",
                           "Sun Nov  6 08:49:37 1994 GMT",
                           "Sun Nov   6 08:49:37 1994",
                           "784111777",
                           "yesterday",
                           "xxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}) {
    EXPECT_FALSE(parse_date(text)) << text;
  }
}

TEST(reason, is_known_for_what_the_server_sends) {
  for (const int status : {200, 206, 301, 304, 400, 403, 404, 405, 408, 413, 414, 416, 417, 431, 500, 501, 503, 505}) {
    EXPECT_NE(reason_of(status), "Unknown") << status;
  }
  EXPECT_EQ(reason_of(599), "Unknown");
}

}  // namespace
