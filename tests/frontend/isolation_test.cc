#include "frontend/isolation.h"

#include <gtest/gtest.h>

namespace kintsugi::frontend {
namespace {

TEST(Isolation, IsReadOffWhatBeginsATransactionOrIsSetInIt) {
  const std::pair<const char*, std::optional<Isolation>> kSaid[] = {
      {"BEGIN", std::nullopt},
      {"begin work", std::nullopt},
      {"START TRANSACTION READ ONLY", std::nullopt},
      {"BEGIN ISOLATION LEVEL REPEATABLE READ", Isolation::kOneSnapshot},
      {"BEGIN /* a */ ISOLATION -- b\n LEVEL Serializable, READ ONLY, DEFERRABLE", Isolation::kSerializable},
      {"START TRANSACTION READ WRITE, ISOLATION LEVEL READ COMMITTED;", Isolation::kEachItsOwn},
      {"BEGIN ISOLATION LEVEL READ UNCOMMITTED READ ONLY", Isolation::kEachItsOwn},
      {"BEGIN ISOLATION LEVEL READ COMMITTED, ISOLATION LEVEL SERIALIZABLE", Isolation::kSerializable},
      {"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ", Isolation::kOneSnapshot},
      {"SET LOCAL TRANSACTION ISOLATION LEVEL REPEATABLE READ", Isolation::kOneSnapshot},
      {"SET TRANSACTION READ ONLY, ISOLATION LEVEL SERIALIZABLE", Isolation::kSerializable},
      {"SET TRANSACTION NOT DEFERRABLE", std::nullopt},
      {"set transaction_isolation = 'serializable'", Isolation::kSerializable},
      {"SET LOCAL transaction_isolation TO 'Repeatable Read'", Isolation::kOneSnapshot},
      {"SET SESSION transaction_isolation TO \"read committed\"", Isolation::kEachItsOwn},
      {"SET transaction_isolation TO DEFAULT", Isolation::kUnknown},
      {"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE", std::nullopt},
      {"SET default_transaction_isolation = 'serializable'", std::nullopt},
      {"SET LOCAL application_name = 'x' ", std::nullopt},
      {"SET my.words TO isolation, level, serializable", std::nullopt},
      {"SAVEPOINT isolation", std::nullopt},
      {"SELECT 'BEGIN ISOLATION LEVEL SERIALIZABLE'", std::nullopt},
      {"", std::nullopt},
  };
  for (const auto& [text, isolation] : kSaid) EXPECT_EQ(isolation_said(text), isolation) << text;
}

TEST(Isolation, IsNamedAsPostgresqlNamesIt) {
  EXPECT_EQ(isolation_named("read committed"), Isolation::kEachItsOwn);
  EXPECT_EQ(isolation_named("READ UNCOMMITTED"), Isolation::kEachItsOwn);
  EXPECT_EQ(isolation_named("repeatable read"), Isolation::kOneSnapshot);
  EXPECT_EQ(isolation_named("serializable"), Isolation::kSerializable);
  EXPECT_EQ(isolation_named("serialisable"), Isolation::kUnknown);
}

TEST(Isolation, DeferrableIsNotWhatIsNotDeferrable) {
  EXPECT_TRUE(says_deferrable("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE"));
  EXPECT_TRUE(says_deferrable("SET TRANSACTION deferrable"));
  EXPECT_FALSE(says_deferrable("BEGIN ISOLATION LEVEL SERIALIZABLE, NOT DEFERRABLE"));
  EXPECT_FALSE(says_deferrable("BEGIN"));
}

}  // namespace
}  // namespace kintsugi::frontend
