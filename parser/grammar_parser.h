// The generated parser, for the few files that may know it.
#pragma once

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wall"
#pragma GCC diagnostic ignored "-Wextra"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wpedantic"
#include <KintsugiSql.h>
#pragma GCC diagnostic pop

namespace kintsugi::parser {
using Grammar = antlr::KintsugiSql;
}
