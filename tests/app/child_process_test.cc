#include "app/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>

#include "app/signals.h"

namespace kintsugi::app {
namespace {

Outcome shell(const std::string& script, std::string input = {}) {
  auto outcome = run_program({.arguments = {"/bin/sh", "-c", script}, .input = std::move(input)});
  EXPECT_TRUE(outcome) << outcome.error().message;
  return outcome.value_or(Outcome{.exit_code = -1, .output = {}});
}

TEST(ChildProcess, InputOutputAndExitCode) {
  std::string much(200000, 'x');
  Outcome outcome = shell("cat; echo err >&2; exit 7", much);
  EXPECT_EQ(outcome.exit_code, 7);
  much += "err\n";
  EXPECT_EQ(outcome.output, much);
  EXPECT_EQ(shell("kill -9 $$").exit_code, 128 + 9);
}

TEST(ChildProcess, ItsEnvironmentIsOursWithoutPostgresVariables) {
  setenv("PGPORT", "1", 1);
  setenv("KINTSUGI_OURS", "here", 1);
  auto outcome = run_program({.arguments = {"/bin/sh", "-c", "echo [$PGPORT] $KINTSUGI_OURS $PGUSER; pwd"},
                              .environment = {{"PGUSER", "u"}}});
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->output, "[] here u\n/\n");
}

TEST(ChildProcess, BlockedSignalsAreOursAlone) {
  block_signals();
  EXPECT_EQ(shell("kill -TERM $$; echo survived").exit_code, 128 + SIGTERM);
  EXPECT_EQ(shell("kill -PIPE $$; echo survived").exit_code, 128 + SIGPIPE);
}

TEST(ChildProcess, WhoeverItLeavesBehindKeepsNobodyWaiting) {
  auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(shell("sleep 3 & echo done").output, "done\n");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST(ChildProcess, PatienceEnds) {
  auto outcome = run_program(
      {.arguments = {"/bin/sh", "-c", "echo begun; sleep 30"}, .patience = std::chrono::milliseconds(100)});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().detail, "begun\n");
}

TEST(ChildProcess, AProgramThatDoesNotExist) {
  auto outcome = run_program({.arguments = {"/none/initdb"}});
  ASSERT_FALSE(outcome);
  EXPECT_NE(outcome.error().message.find("/none/initdb"), std::string::npos);
}

}  // namespace
}  // namespace kintsugi::app
