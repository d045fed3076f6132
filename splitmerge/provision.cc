#include "splitmerge/provision.h"

namespace kintsugi::splitmerge {

Status provision(shardmap::MapStore&, shardmap::MapChange&, JobLease&, const JobLease::Change&) {
  return fail(sqlstate::kNotSupported, "provisioning is not here yet");
}

}  // namespace kintsugi::splitmerge
