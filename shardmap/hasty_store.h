// The map store, for what a crash of it may take back: everybody sees it at once, and it is on the disk a
// moment later. For facts that are told again anyway, such as how far a router is; never for what a promise
// rests on.
#pragma once

#include <memory>
#include <string>

#include "shardmap/map_store.h"

namespace kintsugi::shardmap {

// As open_store, of which see the rest.
Result<std::unique_ptr<MapStore>> open_hasty_store(const std::string& where, const std::string& directory,
                                                   Deadline deadline);

}  // namespace kintsugi::shardmap
