#include "admin/openapi.h"

#include "admin/operation.h"

namespace kintsugi::admin {
namespace {

// The bodies of CONTRACT 6.
constexpr const char* kSchemas = R"json({
  "newShard": {"type": "object", "required": ["name", "dsn"], "additionalProperties": false, "properties": {
    "name": {"type": "string", "example": "s1"}, "dsn": {"type": "string", "example": "host=10.0.0.5 dbname=app user=app"},
    "state": {"enum": ["online"]}}},
  "shardChange": {"type": "object", "additionalProperties": false, "minProperties": 1, "properties": {
    "name": {"type": "string"}, "dsn": {"type": "string"}, "state": {"enum": ["online", "draining", "offline"]}}},
  "shard": {"type": "object", "required": ["name", "dsn", "state"], "properties": {
    "name": {"type": "string"}, "dsn": {"type": "string", "description": "without its password"},
    "state": {"enum": ["preparing", "online", "draining", "offline"]},
    "home": {"type": "boolean"}, "entries": {"type": "integer"},
    "load": {"type": "integer", "description": "statements for those of this router's 50 busiest shardlets that are on it"},
    "bytes": {"type": "integer", "nullable": true, "description": "of its database, looked at now and then"}}},
  "newMap": {"type": "object", "required": ["name", "kind", "key"], "additionalProperties": false, "properties": {
    "name": {"type": "string", "example": "tenants"}, "kind": {"enum": ["range", "list", "hash"]},
    "key": {"type": "array", "minItems": 1, "items": {"type": "string"}, "example": ["bigint"]},
    "shardlets": {"type": "integer", "minimum": 1, "maximum": 65536}, "shards": {"type": "array", "items": {"type": "string"}}}},
  "map": {"type": "object", "required": ["name", "kind", "key"], "properties": {
    "name": {"type": "string"}, "kind": {"enum": ["range", "list", "hash"]}, "key": {"type": "array", "items": {"type": "string"}},
    "shardlets": {"type": "integer"}, "shards": {"type": "array", "items": {"type": "string"}}, "tables": {"type": "integer"}}},
  "bound": {"type": "array", "minItems": 1, "description": "one value a key column; MINVALUE and MAXVALUE are bounds",
    "items": {"oneOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"},
      {"type": "object", "required": ["value"], "properties": {"value": {"type": "string"}}}]}, "example": ["MINVALUE"]},
  "newShardlet": {"type": "object", "required": ["name", "shard"], "additionalProperties": false, "properties": {
    "name": {"type": "string", "example": "a"}, "from": {"$ref": "#/components/schemas/bound"},
    "to": {"$ref": "#/components/schemas/bound"}, "values": {"type": "array", "minItems": 1, "items": {}, "example": ["de", "fr"]},
    "shard": {"type": "string"}, "state": {"enum": ["online", "read only", "offline"]}}},
  "shardletChange": {"type": "object", "additionalProperties": false, "minProperties": 1,
    "description": "another name or state; the rest only as it is, so that what was read can be sent back", "properties": {
    "name": {"type": "string"}, "state": {"enum": ["online", "read only", "offline"]}, "map": {"type": "string"},
    "from": {"$ref": "#/components/schemas/bound"}, "to": {"$ref": "#/components/schemas/bound"},
    "values": {"type": "array", "items": {}}, "shard": {"type": "string"}}},
  "shardlet": {"type": "object", "required": ["name", "map", "shard", "state"], "properties": {
    "name": {"type": "string"}, "map": {"type": "string"}, "from": {"$ref": "#/components/schemas/bound"},
    "to": {"$ref": "#/components/schemas/bound"}, "values": {"type": "array", "items": {}}, "shard": {"type": "string"},
    "state": {"enum": ["online", "read only", "offline", "held"]}}},
  "newTable": {"type": "object", "required": ["name"], "additionalProperties": false, "properties": {
    "name": {"type": "string", "example": "public.orders"}, "map": {"type": "string"},
    "key": {"type": "array", "minItems": 1, "items": {"type": "string"}}, "replicated": {"type": "boolean"}}},
  "table": {"type": "object", "required": ["name"], "properties": {
    "name": {"type": "string"}, "map": {"type": "string"}, "key": {"type": "array", "items": {"type": "string"}},
    "replicated": {"type": "boolean"}, "home": {"type": "boolean"}}},
  "newJob": {"type": "object", "required": ["type"], "additionalProperties": false, "properties": {
    "type": {"enum": ["move", "split", "merge", "drain", "rebalance", "provision"]}, "shardlet": {"type": "string"},
    "shardlets": {"type": "array", "items": {"type": "string"}}, "to": {"type": "string"},
    "at": {"$ref": "#/components/schemas/bound"}, "into": {}, "move": {"type": "string"},
    "mode": {"enum": ["online", "offline"]}, "max_rate": {}, "shard": {"type": "string"}, "map": {"type": "string"},
    "by": {"enum": ["bytes", "rows"], "description": "rebalance: what is to be about equal"}}},
  "job": {"type": "object", "required": ["id", "type", "state"], "properties": {
    "id": {"type": "integer"}, "type": {"type": "string"},
    "state": {"enum": ["queued", "preparing", "copying", "catching_up", "fenced", "committed", "cleaning", "done", "failed", "canceled"]},
    "progress": {"type": "object", "properties": {"rows": {"type": "integer"}, "bytes": {"type": "integer"},
      "total": {"type": "integer"}, "eta_s": {"type": "number", "nullable": true}}},
    "error": {"type": "object", "nullable": true, "properties": {"sqlstate": {"type": "string"}, "message": {"type": "string"},
      "detail": {"type": "string"}, "hint": {"type": "string"}}}, "started": {"type": "string", "nullable": true},
    "ended": {"type": "string", "nullable": true}}},
  "place": {"type": "object", "required": ["map", "key", "shardlet", "shard", "state"], "properties": {
    "map": {"type": "string"}, "key": {"type": "array", "items": {}}, "shardlet": {"type": "string"}, "shard": {"type": "string"},
    "state": {"type": "string"}}},
  "router": {"type": "object", "required": ["name", "epoch", "alive"], "properties": {
    "name": {"type": "string"}, "epoch": {"type": "integer"}, "age_ms": {"type": "integer"}, "lease_ms": {},
    "alive": {"type": "boolean"}, "this": {"type": "boolean"}}},
  "statistic": {"type": "object", "required": ["name", "value"], "properties": {
    "name": {"type": "string"}, "value": {"type": "integer"}}},
  "slowStatement": {"type": "object", "required": ["at", "user", "tier", "shards", "ms", "statement"], "properties": {
    "at": {"type": "string"}, "user": {"type": "string"}, "tier": {"type": "string"},
    "shards": {"type": "array", "items": {"type": "string"}}, "ms": {"type": "integer"}, "waited_ms": {"type": "integer"},
    "held_ms": {"type": "integer"}, "failed": {"type": "boolean"}, "statement": {"type": "string"}}},
  "explainRequest": {"type": "object", "required": ["statement"], "additionalProperties": false, "properties": {
    "statement": {"type": "string", "example": "SELECT * FROM orders WHERE tenant_id = 42"}}},
  "route": {"type": "object", "required": ["lines"], "properties": {"lines": {"type": "array", "items": {"type": "string"}}}},
  "newUser": {"type": "object", "required": ["name", "role"], "additionalProperties": false, "properties": {
    "name": {"type": "string", "example": "grafana"}, "role": {"enum": ["viewer", "operator", "admin"]}}},
  "user": {"type": "object", "required": ["name", "role"], "properties": {
    "name": {"type": "string"}, "role": {"enum": ["viewer", "operator", "admin"]}, "created": {"type": "string"},
    "token": {"type": "string", "description": "in the answer that made it, and never again"}}},
  "pool": {"type": "object", "required": ["shard", "role", "open", "limit", "waiting"], "properties": {
    "shard": {"type": "string"}, "role": {"type": "string"}, "open": {"type": "integer"}, "limit": {"type": "integer"},
    "waiting": {"type": "integer"}}},
  "auditEntry": {"type": "object", "required": ["at", "who", "what", "result"], "properties": {
    "at": {"type": "string"}, "who": {"type": "string"}, "role": {"type": "string"}, "face": {"type": "string"},
    "router": {"type": "string"}, "what": {"type": "string"}, "result": {"type": "string"}, "epoch": {"type": "integer"}}},
  "epoch": {"type": "object", "required": ["epoch"], "properties": {"epoch": {"type": "integer"}, "store_id": {"type": "string"}}},
  "checkRequest": {"type": "object", "additionalProperties": false, "properties": {
    "rows": {"type": "boolean", "description": "also read the keys of every sharded table; default true"}}},
  "difference": {"type": "object", "required": ["kind", "shard", "what"], "properties": {
    "kind": {"type": "string"}, "shard": {"type": "string"}, "what": {"type": "string"}}},
  "resolveRequest": {"type": "object", "required": ["from"], "additionalProperties": false, "properties": {
    "from": {"enum": ["store", "shards"], "description": "the side that is right"}, "dry_run": {"type": "boolean"}}},
  "rebuildRequest": {"type": "object", "required": ["dsns"], "additionalProperties": false, "properties": {
    "dsns": {"type": "array", "minItems": 1, "items": {"type": "string"}}}},
  "step": {"type": "object", "required": ["done"], "properties": {"done": {"type": "string"}}},
  "health": {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}},
  "readiness": {"type": "object", "required": ["ready"], "properties": {
    "ready": {"type": "boolean"}, "why": {"type": "string", "nullable": true, "description": "when it is not"},
    "serving": {"type": "boolean"}, "epoch": {"type": "integer"}, "shards": {"type": "integer"},
    "store": {"type": "string"}, "lease": {"type": "string"}}},
  "problem": {"type": "object", "required": ["type", "title", "status", "detail", "sqlstate", "hint"], "properties": {
    "type": {"type": "string", "example": "urn:kintsugi:error:42704"}, "title": {"type": "string"}, "status": {"type": "integer"},
    "detail": {"type": "string"}, "sqlstate": {"type": "string"}, "circumstances": {"type": "string"}, "hint": {"type": "string"}}}
})json";

Json reference(std::string_view schema) {
  return {{"$ref", "#/components/schemas/" + std::string(schema)}};
}

Json text_content() {
  return {{"text/plain", {{"schema", {{"type", "string"}}}}}};
}

Json content_of(const Operation& operation) {
  if (operation.answer == "file") return text_content();
  if (operation.answer == "jobEvents") return {{"text/event-stream", {{"schema", {{"type", "string"}}}}}};
  Json schema = reference(operation.answer);
  if (operation.list) {
    schema = {
        {"type", "object"},
        {"required", {"items", "next"}},
        {"properties",
         {{"items", {{"type", "array"}, {"items", reference(operation.answer)}}},
          {"next",
           {{"type", "string"}, {"nullable", true}, {"description", "for ?after=; null: there is no more"}}}}}};
  }
  return {{"application/json", {{"schema", schema}}}};
}

Json parameters_of(const Operation& operation) {
  Json parameters = Json::array();
  std::string_view path = operation.path;
  for (std::size_t at = path.find('{'); at != std::string_view::npos; at = path.find('{', at + 1)) {
    parameters.push_back({{"name", std::string(path.substr(at + 1, path.find('}', at) - at - 1))},
                          {"in", "path"},
                          {"required", true},
                          {"schema", {{"type", "string"}}}});
  }
  const auto query = [&parameters](std::string_view name, const char* type) {
    parameters.push_back({{"name", std::string(name)},
                          {"in", "query"},
                          {"required", name == "key"},
                          {"schema", {{"type", type}}}});
  };
  for (const std::string_view name : parameters_in_query(operation))
    query(name, name == "limit" ? "integer" : "string");
  const auto header = [&parameters](const char* name, const char* meaning) {
    parameters.push_back({{"name", name},
                          {"in", "header"},
                          {"required", false},
                          {"description", meaning},
                          {"schema", {{"type", "string"}}}});
  };
  const bool changes = operation.method != "GET";
  if (changes)
    header("If-Match",
           "ETags of answers: the change is made if the map is still at one of these epochs, else 412");
  if (!changes && has_epoch(operation)) {
    header("If-Match", "ETags of answers: 412 if the map is at none of these epochs");
    header("If-None-Match", "ETags of answers: 304 if the map is still at one of these epochs");
  }
  return parameters;
}

Json described(const Operation& operation) {
  Json json = Json::object();
  json["operationId"] = std::string(operation.id);
  json["summary"] = std::string(operation.summary);
  json["x-role"] = std::string(name_of(operation.role));
  json["parameters"] = parameters_of(operation);
  if (!operation.body.empty()) {
    json["requestBody"] = {
        {"required", operation.body != "checkRequest"},
        {"content", operation.body == "file"
                        ? text_content()
                        : Json{{"application/json", {{"schema", reference(operation.body)}}}}}};
  }
  Json success = {{"description", "done"}};
  if (operation.success != 204) success["content"] = content_of(operation);
  if (has_epoch(operation)) {
    success["headers"]["ETag"] = {{"description", "the epoch of the map"}, {"schema", {{"type", "string"}}}};
    if (operation.method == "GET")
      json["responses"]["304"] = {{"description", "the map is still at that epoch"}};
  }
  json["responses"][std::to_string(operation.success)] = success;
  json["responses"]["default"] = {
      {"description", "a problem"},
      {"content", {{"application/problem+json", {{"schema", reference("problem")}}}}}};
  return json;
}

Json described(const OpenPage& page) {
  Json json = Json::object();
  json["operationId"] = std::string(page.id);
  json["summary"] = std::string(page.summary);
  json["security"] = Json::array();  // nobody is asked for a token
  json["parameters"] = Json::array();
  Json schema = page.schema.empty() ? Json{{"type", page.id == "describe" ? "object" : "string"}}
                                    : reference(page.schema);
  json["responses"]["200"] = {{"description", "done"},
                              {"content", {{std::string(page.type), {{"schema", schema}}}}}};
  if (!page.not_well.empty()) {
    json["responses"]["503"] = {{"description", std::string(page.not_well)},
                                {"content", {{std::string(page.type), {{"schema", schema}}}}}};
  }
  return json;
}

}  // namespace

Json openapi_document(const std::string& version) {
  Json document = Json::object();
  document["openapi"] = "3.0.3";
  document["info"] = {{"title", "Kintsugi"}, {"version", version}};
  document["security"] = Json::array({{{"token", Json::array()}}});
  document["paths"] = Json::object();
  for (const OpenPage& page : open_pages()) document["paths"][std::string(page.path)]["get"] = described(page);
  for (const Operation& operation : operations()) {
    std::string method(operation.method);
    for (char& c : method) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    document["paths"][std::string(operation.path)][method] = described(operation);
  }
  document["components"]["schemas"] = Json::parse(kSchemas);
  document["components"]["securitySchemes"]["token"] = {{"type", "http"}, {"scheme", "bearer"}};
  return document;
}

}  // namespace kintsugi::admin
