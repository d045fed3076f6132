#include "app/print_table.h"

#include <gtest/gtest.h>

namespace kintsugi::app {

TEST(PrintTable, ARowIsALineAndALongCellPushesItsOwnRowOnly) {
  const std::string text(300, 'x');
  const auto rows = nlohmann::ordered_json::array(
      {{{"name", "a"}, {"what", "one\ntwo\x1b[31m"}, {"n", 1}}, {{"name", "b"}, {"what", text}, {"n", 2}}});
  EXPECT_EQ(table_text(rows, {"name", "what", "n"}), "name  what" + std::string(98, ' ') + "n\n" +
                                                         "a     one two [31m" + std::string(90, ' ') + "1\n" +
                                                         "b     " + text + "  2\n");
  EXPECT_EQ(table_text(nlohmann::ordered_json::array(), {"name"}), "(none)\n");
}

TEST(PrintTable, KeysOfSeveralColumnsStandApart) {
  const auto text = [](const char* json) { return value_text(nlohmann::ordered_json::parse(json)); };
  EXPECT_EQ(text(R"([["a", true], ["", false], ["b", 1]])"), "(a, true), ('', false), (b, 1)");
  EXPECT_EQ(text(R"(["", "a"])"), "'', a");
  EXPECT_EQ(text("true"), "yes");
}

}  // namespace kintsugi::app
