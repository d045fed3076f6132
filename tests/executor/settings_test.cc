#include "executor/settings.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

namespace kintsugi::executor {

TEST(Settings, EqualValuesAreOnePointer) {
  const SettingsRef a = Settings::intern({{"b", "2"}, {"a", "1"}});
  const SettingsRef b = Settings::intern({{"a", "1"}, {"b", "2"}});
  EXPECT_EQ(a, b);
  EXPECT_NE(a, Settings::intern({{"a", "1"}, {"b", "3"}}));
  EXPECT_NE(a, Settings::intern({{"a", "1"}}));
  EXPECT_EQ(Settings::intern({}), Settings::none());
  EXPECT_TRUE(Settings::none()->entries().empty());
}

TEST(Settings, OfANameThatStandsTwiceTheLastCounts) {
  const SettingsRef twice = Settings::intern({{"a", "1"}, {"b", "2"}, {"a", "3"}});
  EXPECT_EQ(twice, Settings::intern({{"a", "3"}, {"b", "2"}}));
  EXPECT_EQ(twice->entries().size(), 2U);
}

TEST(Settings, FindAndWith) {
  const SettingsRef some = Settings::intern({{"m", "1"}, {"c", "2"}, {"x", ""}});
  ASSERT_NE(some->find("x"), nullptr);
  EXPECT_EQ(*some->find("x"), "");
  EXPECT_EQ(some->find("d"), nullptr);
  EXPECT_EQ(some->find(""), nullptr);
  const SettingsRef more = some->with("d", "4");
  EXPECT_EQ(some->find("d"), nullptr) << "the first is a value and stays";
  EXPECT_EQ(*more->find("d"), "4");
  EXPECT_EQ(*more->find("m"), "1");
  EXPECT_EQ(more->with("d", "5")->with("d", "4"), more);
}

TEST(Settings, AreForgottenWithTheirLastOwner) {
  std::weak_ptr<const Settings> watched;
  {
    const SettingsRef one = Settings::intern({{"short", "lived"}});
    watched = one;
    EXPECT_FALSE(watched.expired());
  }
  EXPECT_TRUE(watched.expired());
  EXPECT_EQ(*Settings::intern({{"short", "lived"}})->find("short"), "lived");
}

// Two that are alive at the same time and are equal are the same, on whichever threads they were made.
TEST(Settings, ThreadsMakeAndForgetTheSameValues) {
  constexpr int kThreads = 4, kValues = 5, kRounds = 3000;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t, &wrong] {
      std::mt19937 random(static_cast<unsigned>(t));
      SettingsRef kept[kValues];
      for (auto& slot : kept) slot = Settings::none();
      for (int i = 0; i < kRounds; ++i) {
        const unsigned n = random() % kValues;
        const SettingsRef made = Settings::none()->with("n", std::to_string(n))->with("m", "1");
        if (*made->find("n") != std::to_string(n)) ++wrong;
        if (!kept[n]->entries().empty() && kept[n] != made) ++wrong;
        kept[n] = random() % 3 == 0 ? Settings::none() : made;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace kintsugi::executor
