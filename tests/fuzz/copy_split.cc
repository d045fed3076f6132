// The data of a COPY, cut anywhere: the same rows come out as when they come in one piece, or the same error;
// and no byte of a row is lost or made up.
#include "executor/copy_split.h"

#include "tests/executor/copy_map.h"
#include "tests/fuzz/target.h"

namespace {

using kintsugi::executor::CopySplitter;
using kintsugi::planner::CopyIn;

struct Outcome {
  std::string sqlstate;
  std::vector<std::string> outputs;
  std::uint64_t rows = 0;
};

Outcome split(const CopyIn& plan, std::string_view data, std::size_t first) {
  static const kintsugi::shardmap::MapPtr map = kintsugi::executor::copy_map();
  auto splitter = CopySplitter::make(plan, map, 1 << 20);
  CHECK_THAT(splitter);
  Outcome outcome;
  for (std::size_t cut = first; !data.empty() && outcome.sqlstate.empty(); cut = 1 + cut % 13) {
    const std::string piece(data.substr(0, cut));
    data.remove_prefix(piece.size());
    if (const auto taken = splitter->take(piece); !taken) outcome.sqlstate = taken.error().sqlstate;
  }
  if (outcome.sqlstate.empty()) {
    if (const auto finished = splitter->finish(); !finished) outcome.sqlstate = finished.error().sqlstate;
  }
  outcome.outputs = splitter->outputs();
  outcome.rows = splitter->rows();
  return outcome;
}

// The first byte says which format, the second how it is cut.
void fuzz(std::string_view input) {
  if (input.size() < 2) return;
  const auto kind = static_cast<unsigned char>(input[0]), cut = static_cast<unsigned char>(input[1]);
  const std::string_view data = input.substr(2);
  CopyIn plan;
  plan.map = (kind & 8) != 0 ? "pairs" : "ranges";
  plan.key_columns = (kind & 8) != 0 ? std::vector<int>{1, 0} : std::vector<int>{(kind & 16) != 0 ? 1 : 0};
  plan.format = static_cast<CopyIn::Format>(kind % 3);
  plan.header = (kind & 32) != 0;
  plan.shards = {1, 2, 3};
  if (plan.format == CopyIn::Format::kCsv) {
    plan.delimiter = ',';
    plan.null_text = "";
    if ((kind & 64) != 0) plan.escape = '\\';
  }
  const Outcome whole = split(plan, data, data.size());
  const Outcome pieces = split(plan, data, 1 + cut % 17);
  CHECK_THAT(whole.sqlstate == pieces.sqlstate);
  if (!whole.sqlstate.empty()) return;
  CHECK_THAT(whole.outputs == pieces.outputs);
  CHECK_THAT(whole.rows == pieces.rows);
  std::size_t bytes = 0;
  for (const std::string& output : whole.outputs) bytes += output.size();
  const std::size_t most =
      plan.header || plan.format == CopyIn::Format::kBinary ? 3 * data.size() + 6 : data.size();
  CHECK_THAT(bytes <= most);
}

std::vector<std::string> seeds() {
  using namespace std::string_literals;
  return {"\0\1"s + "1\ta\n150\tb\\\nc\n\\N\n", "\1\3"s + "1,\"a\n\"\"b\"\n150,x\n",
          "\x61\2"s + "h\n1,\"a\\\"\n\"\n",
          "\2\4"s + "PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0\0\1\0\0\0\4\0\0\0\7\xff\xff"s,
          "\x08\1"s + "12\tab\r\n13\t\\x41\r\n\\.\r\nrest"};
}

}  // namespace

KINTSUGI_FUZZ_TARGET(copy_split, fuzz, seeds)
