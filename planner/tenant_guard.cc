#include "planner/tenant_guard.h"

#include "planner/analysis_parts.h"
#include "planner/make_insert.h"

namespace kintsugi::planner {

Error outside(const TenantGuard& guard, const std::string& why) {
  return {.sqlstate = std::string(sqlstate::kTenantForbidden),
          .message = "this session may touch " + guard.shown + " only",
          .detail = "Not proven to stay inside: " + why + ".",
          .hint =
              "Say with = in each query which key each sharded table is read for; docs/operations.md has what "
              "a guarded session may do."};
}

std::optional<Error> refuses_always(const TenantGuard& guard, const Analysis& analysis) {
  std::string why = analysis.guard.why;
  if (why.empty()) return std::nullopt;
  if (why.back() == ',') why.pop_back();
  return outside(guard, why);
}

namespace {

// A backslash at its end is an error as soon as a row matches all before it.
bool ends_badly(const Source& source, const Analysis& analysis, const Values& values) {
  if (source.kind == Source::Kind::kParameter) {
    if (source.index >= values.parameters.size()) return false;
    const Parameter& parameter = values.parameters[source.index];
    return !parameter.null && parameter.bytes.ends_with('\\');
  }
  std::string text;
  return !string_of(source, values, analysis.constants, text) || text.ends_with('\\');
}

}  // namespace

std::optional<Error> refuses(const TenantGuard& guard, const Analysis& analysis, const Values& values,
                             const shardmap::ShardMap& map) {
  if (auto error = refuses_always(guard, analysis)) return error;
  const GuardProof& proof = analysis.guard;
  const shardmap::Mapping* mapping = map.mapping(guard.map);
  if (!proof.keys.empty() || proof.rows) {
    if (mapping == nullptr || guard.key.empty())
      return outside(guard, "there is no shard map " + guard.map + " now");
  }
  thread_local std::string key;
  for (const GuardProof::Key& each : proof.keys) {
    if (each.map != guard.map || each.sources.size() != mapping->key_types().size())
      return outside(guard, each.display + " belongs to the shard map " + each.map);
    key.clear();
    for (std::size_t i = 0; i < each.sources.size(); ++i)
      if (append_source(each.sources[i], mapping->key_types()[i], KeyUse::kCompare, values, analysis.constants,
                        key) != KeyOutcome::kValue)
        return outside(guard, "the key given for " + each.display + " is not known before it runs");
    if (key != guard.key) return outside(guard, "another key of " + each.display);
  }
  if (proof.rows) {
    if (!analysis.insert) return outside(guard, "an INSERT whose rows are not known before it runs");
    const InsertTemplate& insert = *analysis.insert;
    if (insert.map != guard.map)
      return outside(guard, insert.display + " belongs to the shard map " + insert.map);
    const InsertRows rows(insert, values, analysis.units);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      key.clear();
      if (!rows.key_of(row, mapping->key_types(), analysis.constants, key))
        return outside(guard, "a row for " + insert.display + " whose key is not known before it runs");
      if (key != guard.key) return outside(guard, "a row of another key for " + insert.display);
    }
  }
  for (const Source& pattern : proof.patterns)
    if (ends_badly(pattern, analysis, values))
      return outside(guard, "a LIKE pattern that is no plain string, or ends in a backslash");
  return std::nullopt;
}

}  // namespace kintsugi::planner
