#include "shardmap/lock_attempt.h"

namespace kintsugi::shardmap {
namespace {

constexpr std::string_view kLockNotAvailable = "55P03";
constexpr std::string_view kDeadlock = "40P01";

}  // namespace

Result<bool> attempt_with_locks(PgSession& session, const std::string& statements,
                                std::chrono::milliseconds lock_timeout, Deadline deadline) {
  const Status done = session.script("BEGIN; SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = " +
                                         std::to_string(lock_timeout.count()) + "; " + statements + "; COMMIT",
                                     deadline);
  if (done) return true;
  if (session.good()) (void)session.run("ROLLBACK", {}, deadline);
  if (done.error().sqlstate == kLockNotAvailable || done.error().sqlstate == kDeadlock) return false;
  return fail(done.error());
}

}  // namespace kintsugi::shardmap
