#include "http/address.hpp"

#include <gtest/gtest.h>

namespace loam::http {
namespace {

TEST(Address, ReadsPathsAndHosts) {
  EXPECT_EQ(parse_address("/run/a.sock").value(), Address(UnixAddress{"/run/a.sock"}));
  EXPECT_EQ(parse_address("unix:a.sock").value(), Address(UnixAddress{"a.sock"}));
  EXPECT_EQ(parse_address("./a:1/b").value(), Address(UnixAddress{"./a:1/b"}));
  EXPECT_EQ(parse_address("127.0.0.1:7100").value(), Address(TcpAddress{"127.0.0.1", 7100}));
  EXPECT_EQ(parse_address("[::1]:80").value(), Address(TcpAddress{"::1", 80}));
  EXPECT_EQ(parse_address("http://host:7100/").value(), Address(TcpAddress{"host", 7100}));
  for (const char* text : {"unix:/run/a.sock", "[::1]:80", "host:0"})
    EXPECT_EQ(to_text(parse_address(text).value()), text);
}

TEST(Address, RefusesWhatIsNone) {
  for (const std::string& text :
       {std::string(), std::string("unix:"), std::string("host"), std::string(":80"),
        std::string("host:"), std::string("host:65536"), std::string("host:-1"),
        std::string("host:+1"), std::string("host:80x"), std::string("::1:80"),
        std::string("[]:80"), std::string("https://host:1"), std::string("http://host:1/v1"),
        std::string("ho st:1"), std::string("h\n:1"), "/" + std::string(107, 'x'),
        std::string("/a\0b", 4)}) {
    const auto address = parse_address(text);
    ASSERT_FALSE(address.ok()) << text;
    EXPECT_FALSE(address.error().next_step.empty()) << text;
  }
  EXPECT_TRUE(parse_address("/" + std::string(106, 'x')).ok());
}

}  // namespace
}  // namespace loam::http
