#include "executor/prepared.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "wire/server_messages.h"

namespace kintsugi::executor {
namespace {

Shape shape_of(const std::vector<wire::Column>& columns) {
  std::string bytes;
  wire::append_row_description(bytes, columns);
  return shape_of_row_description(std::string_view(bytes).substr(wire::kHeaderBytes));
}

}  // namespace

TEST(Prepared, TheSameTextTypesAndPathAreOneStatement) {
  const PreparedRef one = intern_prepared("SELECT $1", "", "public");
  EXPECT_EQ(one, intern_prepared("SELECT $1", "", "public"));
  EXPECT_EQ(one, find_prepared("SELECT $1", "", "public"));
  EXPECT_NE(one, intern_prepared("SELECT $1", "", "other"));
  EXPECT_NE(one, intern_prepared("SELECT $1", std::string("\0\0\0\x17", 4), "public"));
  EXPECT_NE(one, intern_prepared("SELECT  $1", "", "public"));
  EXPECT_EQ(one->server_name, "kg_" + std::to_string(one->id));
}

TEST(Prepared, IsForgottenWithTheLastWhoHasIt) {
  {
    const PreparedRef one = intern_prepared("SELECT 'gone soon'", "", "");
    EXPECT_NE(find_prepared("SELECT 'gone soon'", "", ""), nullptr);
  }
  EXPECT_EQ(find_prepared("SELECT 'gone soon'", "", ""), nullptr);
}

TEST(Prepared, ANameIsNeverUsedForTwoTexts) {
  std::uint64_t first = 0;
  { first = intern_prepared("SELECT 'a'", "", "")->id; }
  EXPECT_NE(intern_prepared("SELECT 'b'", "", "")->id, first);
  EXPECT_NE(intern_prepared("SELECT 'a'", "", "")->id, first);
}

TEST(Prepared, ShapesTellNamesTypesAndModifiersApart) {
  const wire::Column base{.name = "a", .type_oid = 23, .type_size = 4};
  wire::Column named = base, typed = base, modified = base, binary = base;
  named.name = "b";
  typed.type_oid = 20;
  modified.type_modifier = 20;
  binary.format = 1;
  const Shape shape = shape_of({base});
  EXPECT_GT(shape, kNoRows);
  EXPECT_NE(shape, shape_of({named}));
  EXPECT_NE(shape, shape_of({typed}));
  EXPECT_NE(shape, shape_of({modified}));
  EXPECT_NE(shape, shape_of({base, base}));
  EXPECT_NE(shape, shape_of({}));
  EXPECT_EQ(shape, shape_of({binary})) << "the format is each Bind's own";
  EXPECT_EQ(shape_of_row_description("\x01"), 0U);
}

TEST(PreparedOnBackend, TheOneUsedLongestAgoGoesFirst) {
  PreparedOnBackend on;
  std::vector<PreparedRef> some;
  for (int i = 0; i < 4; ++i) {
    some.push_back(intern_prepared("SELECT " + std::to_string(i), "", ""));
    on.add(some.back()).confirmed = true;
  }
  EXPECT_EQ(on.size(), 4U);
  EXPECT_EQ(on.oldest_beyond(5), nullptr);
  EXPECT_EQ(on.oldest_beyond(4), some[0]);
  EXPECT_NE(on.find(some[0]->id), nullptr);  // a use
  EXPECT_EQ(on.oldest_beyond(4), some[1]);
  on.erase(some[1]->id);
  EXPECT_EQ(on.find(some[1]->id), nullptr);
  EXPECT_EQ(on.oldest_beyond(4), nullptr);
  EXPECT_EQ(on.oldest_beyond(3), some[2]);
  on.erase(some[1]->id);  // again: nothing
  on.clear();
  EXPECT_EQ(on.size(), 0U);
  EXPECT_EQ(on.oldest_beyond(0), nullptr);
}

TEST(PreparedOnBackend, WhatIsNotConfirmedYetIsNotClosed) {
  PreparedOnBackend on;
  const PreparedRef one = intern_prepared("SELECT 'unanswered'", "", "");
  on.add(one);
  EXPECT_EQ(on.oldest_beyond(1), nullptr);
  on.find(one->id)->confirmed = true;
  EXPECT_EQ(on.oldest_beyond(1), one);
}

TEST(PreparedOnBackend, AddedAnewItKnowsTheSchemaOfNow) {
  PreparedOnBackend on;
  const PreparedRef one = intern_prepared("SELECT 'generation'", "", "");
  on.add(one).confirmed = true;
  EXPECT_EQ(on.find(one->id)->generation, schema_generation());
  bump_schema_generation();
  EXPECT_NE(on.find(one->id)->generation, schema_generation());
  on.add(one);
  EXPECT_EQ(on.find(one->id)->generation, schema_generation());
  EXPECT_FALSE(on.find(one->id)->confirmed);
  EXPECT_EQ(on.size(), 1U);
}

TEST(Prepared, ThreadsShareAndForget) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([t, &wrong] {
      std::mt19937 random(t);
      PreparedRef kept;
      for (int i = 0; i < 3000; ++i) {
        const std::string text = "SELECT " + std::to_string(random() % 3);
        const PreparedRef made = intern_prepared(text, "", "threads");
        if (made->text != text) ++wrong;
        if (kept != nullptr && kept->text == text && kept != made) ++wrong;
        if (find_prepared(text, "", "threads") != made) ++wrong;
        kept = random() % 2 == 0 ? made : nullptr;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace kintsugi::executor
