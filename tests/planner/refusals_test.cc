// docs/dialect.md lists what is refused and what to do instead: every 0A000 of the golden plans, between two
// marks. KINTSUGI_ACCEPT=1 writes the list anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace kintsugi::planner {
namespace {

constexpr std::string_view kBegin = "<!-- refusals: made by tests/planner/refusals_test.cc -->\n";
constexpr std::string_view kEnd = "<!-- end of refusals -->\n";

std::string slurp(const std::string& path) {
  std::ifstream file(path);
  std::stringstream all;
  all << file.rdbuf();
  return all.str();
}

TEST(Refusals, AreAllInTheDialectsPageAndSayWhatToDo) {
  std::map<std::string, std::pair<std::string, std::string>> refusals;  // message: example, hint
  int statements = 0;
  for (const auto& entry : std::filesystem::directory_iterator("tests/golden")) {
    if (entry.path().extension() != ".sql" || entry.path().stem() == "schema") continue;
    std::istringstream lines(slurp(entry.path()));
    std::string text, message;
    for (std::string line; std::getline(lines, line);) {
      if (line.empty()) {
        statements += text.empty() ? 0 : 1;
        text.clear();
        message.clear();
      } else if (line.starts_with("-- refused 0A000: ")) {
        message = line.substr(18);
        refusals.try_emplace(message, text, "");
      } else if (line.starts_with("--   hint: ") && !message.empty()) {
        refusals[message].second = line.substr(11);
      } else if (!line.starts_with("--")) {
        text += (text.empty() ? "" : " ") + line;
      }
    }
  }
  EXPECT_GE(statements, 300);
  EXPECT_GE(refusals.size(), 20U);
  std::string list(kBegin);
  list += "\n| refused (0A000) | for example | instead |\n|---|---|---|\n";
  const auto cell = [](std::string cell_text) {
    for (std::size_t at = 0; (at = cell_text.find('|', at)) != std::string::npos; at += 2)
      cell_text.insert(at, "\\");
    return cell_text;
  };
  for (const auto& [message, rest] : refusals) {
    EXPECT_FALSE(rest.second.empty()) << "does not say what to do instead: " << message;
    list += "| " + cell(message) + " | `" + cell(rest.first) + "` | " + cell(rest.second) + " |\n";
  }
  list += "\n";
  const std::string path = "docs/dialect.md";
  std::string page = slurp(path);
  const std::size_t begin = page.find(kBegin);
  const std::size_t end = page.find(kEnd);
  ASSERT_NE(begin, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  if (std::getenv("KINTSUGI_ACCEPT") != nullptr) {
    page.replace(begin, end - begin, list);
    std::ofstream(path) << page;
    return;
  }
  EXPECT_EQ(page.substr(begin, end - begin), list) << "KINTSUGI_ACCEPT=1 brings " << path << " up to date";
}

}  // namespace
}  // namespace kintsugi::planner
