// What reading a message may allocate: nothing on the relay's way, and never more than the bytes that are
// there.
#include <gtest/gtest.h>

#include "tests/allocations.h"
#include "tests/wire/every_message.h"

namespace kintsugi::wire {
namespace {
using namespace std::string_view_literals;

template <class Do>
std::size_t largest_allocation(Do&& what) {
  kintsugi::testing::largest_allocation = 0;
  what();
  return kintsugi::testing::largest_allocation;
}
template <class Do>
std::size_t count_allocations(Do&& what) {
  kintsugi::testing::allocations = 0;
  what();
  return kintsugi::testing::allocations;
}
}  // namespace

TEST(Allocation, IsCounted) {
  EXPECT_EQ(count_allocations([] { std::vector<char> v(100'000); }), 1U);
  EXPECT_EQ(largest_allocation([] { std::vector<char> v(100'000); }), 100'000U);
}

TEST(Allocation, NoneOnTheRelaysWay) {
  std::string frame, bind_frame;
  append_parse(frame, "statement", "select 1 from a_table_with_a_long_name where id = $1", "\0\0\0\x17"sv);
  append_bind(bind_frame, "a portal with a long name", "a statement with a long name",
              "\0\x01\0\x01\0\x01\0\0\0\x04\0\0\0\x2a\0\x01\0\x01"sv);
  EXPECT_EQ(count_allocations([&] {
              auto parse = peek_frame(frame, 1000);
              EXPECT_TRUE(parse && *parse && read_parse((*parse)->body));
              auto peeked = peek_frame(bind_frame, 1000);
              auto bind = read_bind((*peeked)->body);
              auto key = read_bind_value(*bind, 0);
              EXPECT_TRUE(key && key->bytes.size() == 4);
              EXPECT_TRUE(read_execute("portal\0\0\0\0\0"sv));
              EXPECT_TRUE(read_describe("Sstatement\0"sv));
              EXPECT_TRUE(read_ready_for_query("I"));
              EXPECT_TRUE(read_command_complete("SELECT 1\0"sv));
            }),
            0U);
}

TEST(Allocation, NoCountIsBelievedBeforeItsBytesAreThere) {
  const auto many = "\xff\xff\xff\xff\xff\xff\xff\xff"sv;
  auto refused = [](auto&& read) { return largest_allocation([&] { EXPECT_FALSE(read()); }); };
  BindMessage values{"", "", "\0\0\xff\xff\0\0\0\0"sv};
  BindMessage formats{"", "", "\xff\xff\0\0\0\0\0\0"sv};
  BindMessage results{"", "", "\0\0\0\0\xff\xff\0\0"sv};
  EXPECT_LT(refused([&] { return read_bind_values(values); }), 256U);
  EXPECT_LT(refused([&] { return read_bind_values(formats); }), 256U);
  EXPECT_LT(refused([&] { return read_bind_values(results); }), 256U);
  EXPECT_LT(refused([&] { return read_row_description(many); }), 256U);
  EXPECT_LT(refused([&] { return read_data_row(many); }), 256U);
  EXPECT_LT(refused([&] { return read_parameter_description(many); }), 256U);
  EXPECT_LT(refused([&] { return read_copy_start("\x01\xff\xff\xff"sv); }), 256U);
  EXPECT_LT(refused([&] { return read_negotiate_version(many); }), 256U);
}

}  // namespace kintsugi::wire
