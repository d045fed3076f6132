// The extended protocol in odd orders: the same bytes to PostgreSQL and to the router, the same messages back.
#include "tests/frontend/front.h"

namespace kintsugi::fronttest {
namespace {

class Pipeline : public ::testing::Test {
 protected:
  Front front_;
  RawClient router_{front_.port()};
  RawClient postgres_{cluster().port()};

  void same(const Batch& batch, int ready = 1) {
    const std::string expected = postgres_.exchange(batch, ready);
    EXPECT_EQ(router_.exchange(batch, ready), expected);
  }
  void still_works() { EXPECT_EQ(router_.query("SELECT 'well'"), "T D(well) C(SELECT 1) Z(I)"); }
};

TEST_F(Pipeline, OrdersThatAreLegal) {
  same(Batch().sync());
  same(Batch().flush().sync());
  same(Batch().sync().sync().sync(), 3);
  same(Batch().close('S', "never").close('P', "never").close('S', "").sync());
  same(Batch().run("SELECT 1").sync().run("SELECT 2").sync(), 2);
  same(Batch().run("SELECT 1").run("SELECT 2").flush().run("SELECT 3").sync());
  same(Batch().describe('P', "").sync());
  same(Batch().describe('S', "").sync());
  same(Batch()
           .parse("", "SELECT $1::int")
           .describe('S', "")
           .bind("", "", {"4"})
           .describe('P', "")
           .execute()
           .sync());
  same(Batch().parse("", "").bind("", "").describe('P', "").execute().sync());
  same(Batch().run("SELECT 1").query("SELECT 2"));
  same(Batch().query(""));
  same(Batch().query("SELECT 1; SELECT 2; SELECT 1/0; SELECT 3"));
  same(Batch().query("SELECT 1").query("SELECT 2").sync().query("SELECT 3"), 4);
  still_works();
}

TEST_F(Pipeline, PortalsInPieces) {
  same(Batch().query("BEGIN"));
  same(Batch().parse("p", "SELECT generate_series(1, 7)").bind("c", "p").execute("c", 3).sync());
  same(Batch().execute("c", 3).flush().execute("c", 3).sync());
  same(Batch().execute("c", 0).close('P', "c").execute("c", 1).sync());
  same(Batch().query("ROLLBACK"));
  same(Batch().bind("d", "p").execute("d", 2).flush().execute("d", 2).sync().execute("d", 2).sync(), 2);
  still_works();
}

TEST_F(Pipeline, ErrorsInTheMiddle) {
  same(Batch().run("SELECT 1").run("SELECT 1/0").run("SELECT 3").sync().run("SELECT 4").sync(), 2);
  same(Batch().parse("a", "SELECT 1/0").bind("", "a").execute().describe('S', "a").close('S', "a").sync());
  same(Batch().bind("", "nobody").sync());
  same(Batch().describe('S', "nobody").execute("nobody").sync());
  same(Batch().execute("nobody").sync().execute("").sync(), 2);
  same(Batch().parse("b", "SELEKT").bind("", "b").execute().sync().bind("", "b").sync(), 2);
  same(Batch().query("BEGIN").run("SELECT 1/0").sync().run("SELECT 2").sync().query("ROLLBACK"), 4);
  same(Batch().parse("x", "SELECT 1").parse("x", "SELECT 2").sync());
  still_works();
}

TEST_F(Pipeline, ANameWhoseParseFailedIsFreeForTheNextOfTheSamePipeline) {
  same(Batch().parse("s", "SELEKT").sync().parse("s", "SELECT 7").bind("", "s").execute().sync(), 2);
}

TEST_F(Pipeline, AParseThatWasSkippedHasPreparedNothing) {
  // The second pipeline prepares the same text that the first one was not let to prepare.
  same(Batch()
           .run("SELECT 1/0")
           .parse("one", "SELECT 'x' || $1::text")
           .sync()
           .parse("two", "SELECT 'x' || $1::text")
           .bind("", "two", {"y"})
           .execute()
           .sync(),
       2);
}

TEST_F(Pipeline, ACloseThatWasSkippedHasClosedNothing) {
  same(Batch().parse("kept", "SELECT 'kept'").sync());
  same(Batch().run("SELECT 1/0").close('S', "kept").sync());
  same(Batch().bind("", "kept").execute().sync());
}

TEST_F(Pipeline, AnUnnamedStatementThatWasSkippedIsNotAnotherClients) {
  RawClient other(front_.port());
  EXPECT_EQ(other.exchange(Batch().run("SELECT 'of the other client'").sync()),
            "1 2 D(of the other client) C(SELECT 1) Z(I)");
  router_.send(Batch().execute("nobody").parse("", "SELECT 'mine'").sync().bind("", "").execute().sync());
  const std::string got = router_.until_ready(2);
  EXPECT_EQ(got.find("other"), std::string::npos) << got;
  EXPECT_EQ(other.exchange(Batch().run("SELECT 'of the other client'").sync()),
            "1 2 D(of the other client) C(SELECT 1) Z(I)");
  const std::string later = router_.exchange(Batch().bind("", "").execute().sync());
  EXPECT_EQ(later.find("other"), std::string::npos) << later;
}

TEST_F(Pipeline, NobodysNameReachesAStatementOfTheRouter) {
  EXPECT_EQ(router_.exchange(Batch().parse("mine", "SELECT 'shared'").bind("", "mine").execute().sync()),
            "1 2 D(shared) C(SELECT 1) Z(I)");
  RawClient stranger(front_.port());
  std::string all;
  for (int id = 1; id < 40; ++id) {
    const std::string name = "kg_" + std::to_string(id);
    EXPECT_EQ(stranger.exchange(Batch().bind("", name).execute().sync()), "E(26000) Z(I)") << name;
    EXPECT_EQ(stranger.exchange(Batch().describe('S', name).sync()), "E(26000) Z(I)") << name;
    EXPECT_EQ(stranger.exchange(Batch().close('S', name).sync()), "3 Z(I)") << name;
    EXPECT_EQ(stranger.query("EXECUTE " + name), "E(26000) Z(I)") << name;
    EXPECT_EQ(stranger.query("DEALLOCATE " + name), "E(26000) Z(I)") << name;
  }
  EXPECT_EQ(router_.exchange(Batch().bind("", "mine").execute().sync()), "2 D(shared) C(SELECT 1) Z(I)");
}

TEST_F(Pipeline, CopyInTheExtendedProtocol) {
  direct("CREATE TABLE IF NOT EXISTS copied(a int); TRUNCATE copied");
  // libpq and tokio-postgres send Sync with the Execute and again behind CopyDone: COPY swallows the first.
  const Batch begin = Batch().run("COPY copied FROM STDIN").sync();
  const Batch end = Batch().copy_data("1\n2\n").copy_done().sync();
  for (RawClient* client : {&postgres_, &router_}) {
    client->send(begin);
    EXPECT_EQ(client->until('G'), "1 2 G");
    client->send(end);
    EXPECT_EQ(client->until_ready(), "C(COPY 2) Z(I)");
    EXPECT_EQ(client->query("SELECT count(*) FROM copied"),
              client == &postgres_ ? "T D(2) C(SELECT 1) Z(I)" : "T D(4) C(SELECT 1) Z(I)");
  }
  // All at once.
  same(Batch().run("COPY copied FROM STDIN").sync().copy_data("3\n").copy_done().sync());
  same(Batch().run("COPY copied FROM STDIN").copy_data("3\n").copy_done().sync());
  same(Batch().run("COPY copied FROM STDIN").copy_data("3\n").copy_fail("no").sync());
  same(Batch().run("COPY copied FROM STDIN").sync().copy_data("x\n").copy_done().sync());
  same(Batch().run("COPY nobody FROM STDIN").sync().copy_data("x\n").copy_done().sync(), 2);
  same(Batch().run("COPY (SELECT 1) TO STDOUT").sync());
  same(Batch().query("COPY copied FROM STDIN").copy_data("5\n").copy_done());
  same(Batch().query("COPY copied FROM STDIN").copy_data("5\n").sync().copy_data("6\n").copy_done());
  same(Batch().query("COPY copied FROM STDIN").copy_fail("no"));
  same(Batch().query("COPY copied FROM STDIN").copy_data("y\n").copy_done());
  same(Batch().copy_data("stray\n").copy_done().copy_fail("").sync());
  still_works();
}

TEST_F(Pipeline, ACopyWhoseSyncWasSwallowedIsNotCommittedBeforeTheNext) {
  direct("CREATE TABLE IF NOT EXISTS copied2(a int); TRUNCATE copied2");
  router_.send(Batch().run("COPY copied2 FROM STDIN").sync());
  EXPECT_EQ(router_.until('G'), "1 2 G");
  router_.send(Batch().copy_data("1\n").copy_done().flush());
  EXPECT_EQ(router_.until('C'), "C(COPY 1)");
  // Its transaction is still open: no other client may come into it.
  RawClient other(front_.port());
  EXPECT_EQ(other.query("SELECT count(*) FROM copied2"), "T D(0) C(SELECT 1) Z(I)");
  EXPECT_EQ(router_.exchange(Batch().sync()), "Z(I)");
  EXPECT_EQ(other.query("SELECT count(*) FROM copied2"), "T D(1) C(SELECT 1) Z(I)");
}

TEST_F(Pipeline, ACopyThatFailsAtOnceLeavesNothingBehind) {
  // The trigger fails before COPY has read anything, so that the Sync is not swallowed and there are two ends.
  direct(
      "DROP TABLE IF EXISTS refused; CREATE TABLE refused(a int);"
      "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'no'; END$$;"
      "CREATE TRIGGER t BEFORE INSERT ON refused EXECUTE FUNCTION refuse()");
  for (RawClient* client : {&postgres_, &router_}) {
    client->send(Batch().run("COPY refused FROM STDIN").sync());
    EXPECT_EQ(client->until_ready(), "1 2 G E(P0001) Z(I)");
  }
  still_works();
  RawClient other(front_.port());
  EXPECT_EQ(other.query("SELECT 'well'"), "T D(well) C(SELECT 1) Z(I)");
}

// Such a message has to be seen whole before it can go on. It grows where it is, and is not copied again and
// again.
TEST(LongMessages, ANoticeOf100MegabytesPasses) {
  Front front;
  RawClient client(front.port());
  client.send(Batch().query("DO $$ BEGIN RAISE NOTICE '%', repeat('n', 100000000); END $$"));
  auto notice = client.next();
  ASSERT_TRUE(notice.has_value());
  EXPECT_EQ(notice->type, 'N');
  const std::size_t begin = notice->body.find("nnn");
  EXPECT_EQ(std::string_view(notice->body).substr(begin, 100000000).find_first_not_of('n'), std::string::npos);
  EXPECT_EQ(client.until_ready(), "C(DO) Z(I)");
  EXPECT_EQ(client.query("SELECT 1"), "T D(1) C(SELECT 1) Z(I)");
}

}  // namespace
}  // namespace kintsugi::fronttest
