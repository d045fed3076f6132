// Who keeps the catalogue up to date, as the front sees it: app/ with a CatalogFeed. New catalogues come the
// other way, by Server::deliver. Any thread may call.
#pragma once

#include <functional>
#include <string>

#include "planner/catalog.h"

namespace kintsugi::frontend {

class CatalogSource {
 public:
  virtual ~CatalogSource() = default;

  // The catalogue to start with; never null.
  [[nodiscard]] virtual planner::CatalogPtr current() const = 0;

  // Has it read again. `done` is called once, on any thread, when what it found has been handed to every thread
  // of the server, or when it could not be read.
  virtual void refresh(const std::string& reason, std::function<void()> done) = 0;
};

}  // namespace kintsugi::frontend
