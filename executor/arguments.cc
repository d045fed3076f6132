#include "executor/arguments.h"

#include "executor/describe.h"
#include "wire/client_messages.h"

namespace kintsugi::executor {
namespace {

// No client has such a name (frontend/statement_names.h), and no statement that is kept.
constexpr std::string_view kName = "kg_arguments";

}  // namespace

// EXECUTE itself makes them, of a statement with these parameters that only says what they are.
io::Task<Result<Rows>> cast_arguments(Backend* backend, std::string arguments, std::vector<std::uint32_t> types,
                                      io::Waiter* waiter, Deadline deadline) {
  std::string text, oids;
  for (std::size_t i = 0; i < types.size(); ++i) {
    text += (i == 0 ? "SELECT $" : ", $") + std::to_string(i + 1) + "::pg_catalog.text";
    for (int shift = 24; shift >= 0; shift -= 8) oids += static_cast<char>(types[i] >> shift & 0xff);
  }
  std::string request;
  wire::append_parse(request, kName, text, oids);
  wire::append_sync(request);
  auto preparing = exchange_extended(backend, std::move(request), waiter, deadline);
  if (auto prepared = co_await std::move(preparing); !prepared) co_return fail(std::move(prepared).error());
  auto executing = run_control_query(
      backend, "EXECUTE " + std::string(kName) + " (" + std::move(arguments) + "\n)", waiter, deadline);
  auto rows = co_await std::move(executing);
  if (backend->broken) co_return fail(std::move(rows).error());
  request.clear();
  wire::append_close(request, 'S', kName);
  wire::append_sync(request);
  auto closing = exchange_extended(backend, std::move(request), waiter, deadline);
  if (auto closed = co_await std::move(closing); !closed && rows) co_return fail(std::move(closed).error());
  if (rows && (rows->size() != 1 || rows->front().size() != types.size()))
    co_return fail(sqlstate::kProtocolViolation,
                   "shard " + backend->shard + " has not answered EXECUTE with values");
  co_return rows;
}

}  // namespace kintsugi::executor
