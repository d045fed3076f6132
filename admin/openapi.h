// The description of the REST face, made of the table that routes it. Pure.
#pragma once

#include <string>

#include "admin/commands/command_result.h"

namespace kintsugi::admin {

[[nodiscard]] Json openapi_document(const std::string& version);

}  // namespace kintsugi::admin
