// Addresses and endpoints: parsing, printing, and the kernel's form.

#include "pirn/net/address.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>

namespace {

using pirn::endpoint;
using pirn::ip_address;

TEST(ip_address, parses_and_prints) {
  for (const char* text :
       {"0.0.0.0", "127.0.0.1", "192.0.2.255", "::", "::1", "2001:db8::8a2e:370:7334", "fe80::1%1"}) {
    const auto parsed = ip_address::parse(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(parsed->to_string(), text);
  }
  EXPECT_EQ(*ip_address::parse("::1"), ip_address::loopback_v6());
  EXPECT_EQ(*ip_address::parse("localhost"), ip_address::loopback_v4());
  EXPECT_EQ(ip_address::parse("fe80::1%lo")->scope(), 1u);
  EXPECT_NE(ip_address::any_v4(), ip_address::any_v6());
}

TEST(ip_address, refuses_what_is_none) {
  using namespace std::string_view_literals;
  for (const auto text : {""sv, "1.2.3"sv, "1.2.3.256"sv, "1.2.3.4 "sv, "1.2.3.4%1"sv, ":::"sv, "fe80::1%"sv,
                          "fe80::1%0"sv, "fe80::1%nosuch"sv, "example.com"sv, "::1\0"sv, "127.0.0.1\0x"sv}) {
    EXPECT_EQ(ip_address::parse(text).error(), pirn::io_error::bad_syntax) << text;
  }
}

TEST(endpoint, parses_and_prints) {
  for (const char* text : {"127.0.0.1:80", "[::1]:65535", "[fe80::1%1]:1", "0.0.0.0:0"}) {
    const auto parsed = endpoint::parse(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(parsed->to_string(), text);
  }
  for (const char* text : {"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "::1:80", "[::1]",
                           "[127.0.0.1]:80", "[]:80", "127.0.0.1:80x"}) {
    EXPECT_FALSE(endpoint::parse(text)) << text;
  }
}

TEST(endpoint, survives_the_kernel_form) {
  for (const char* text : {"192.0.2.1:8080", "[2001:db8::1]:443", "[fe80::1%1]:1"}) {
    ::sockaddr_storage native;
    const endpoint original = *endpoint::parse(text);
    EXPECT_GT(pirn::detail::to_native(original, native), 0u);
    EXPECT_EQ(pirn::detail::from_native(native), original);
  }
}

}  // namespace
