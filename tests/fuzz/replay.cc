// Every fuzz target over its seeds, its kept corpus and mutations of both, without libFuzzer.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/fuzz/mutation.h"
#include "tests/fuzz/target.h"

namespace kintsugi::fuzz {
namespace {

std::vector<std::string> kept(const std::string& target) {
  std::vector<std::string> inputs;
  std::filesystem::path folder = std::filesystem::path(KINTSUGI_FUZZ_CORPUS) / target;
  if (!std::filesystem::exists(folder)) return inputs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return inputs;
}

// On the heap in exactly its size, so that AddressSanitizer sees a read beyond it.
void run_exact(const Target& target, const std::string& input) {
  std::vector<char> exact(input.begin(), input.end());
  exact.shrink_to_fit();
  target.run({exact.data(), exact.size()});
}

class FuzzReplay : public ::testing::TestWithParam<Target> {};
}  // namespace

TEST_P(FuzzReplay, SeedsCorpusAndMutations) {
  const Target& target = GetParam();
  std::vector<std::string> inputs = target.seeds();
  ASSERT_FALSE(inputs.empty()) << "a target starts from seeds";
  for (std::string& input : kept(target.name)) inputs.push_back(std::move(input));
  inputs.emplace_back();
  std::mt19937 random(1);  // NOLINT: the same inputs every time
  for (const std::string& input : inputs) {
    run_exact(target, input);
    for (int i = 0; i < 300; ++i) run_exact(target, mutated(input, random));
  }
}

INSTANTIATE_TEST_SUITE_P(Every, FuzzReplay, ::testing::ValuesIn(targets()),
                         [](const auto& param) { return param.param.name; });

TEST(FuzzCorpus, BelongsToATargetThatIsThere) {
  if (!std::filesystem::exists(KINTSUGI_FUZZ_CORPUS)) return;
  for (const auto& entry : std::filesystem::directory_iterator(KINTSUGI_FUZZ_CORPUS)) {
    if (!entry.is_directory()) continue;
    std::string name = entry.path().filename();
    EXPECT_TRUE(std::any_of(targets().begin(), targets().end(), [&](const Target& t) {
      return t.name == name;
    })) << name;
  }
}

}  // namespace kintsugi::fuzz
