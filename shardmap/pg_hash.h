// PostgreSQL's extended hash of a key, from its encoded bytes. HASH maps divide the space of these hashes.
//
// It is what `hash_record_extended(ROW(a, b), seed)` answers in SQL, for one column as for several
// (docs/decisions/ 0030-shard-map.md says why that function): for one column that is the extended hash function
// of the type itself. Pure; any thread may call; allocates for a bytea alone.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shardmap/key_type.h"

namespace kintsugi::shardmap {

// The seed of PostgreSQL's own hash partitioning.
inline constexpr std::uint64_t kHashSeed = 0x7A5B22367996DCFD;

// `key` must be a whole encoded key of `types`, without MINVALUE or MAXVALUE.
[[nodiscard]] std::int64_t hash_of_key(const KeyTypes& types, std::string_view key,
                                       std::uint64_t seed = kHashSeed);

// "hash_record_extended(ROW(a, b), 8816678312871386365)" over expressions that are already quoted as SQL needs.
[[nodiscard]] std::string hash_expression(const std::vector<std::string>& columns);

}  // namespace kintsugi::shardmap
