// The catalogue of a running router: a CatalogFeed for the front. Made and ended by one thread; what a
// CatalogSource offers may be called by any.
#pragma once

#include <memory>

#include "app/map_service.h"
#include "executor/catalog_feed.h"
#include "frontend/catalog_source.h"

namespace kintsugi::app {

class CatalogService final : public frontend::CatalogSource {
 public:
  explicit CatalogService(std::shared_ptr<MapService> maps);

  // Hands catalogues to the server that `maps` has attached.
  void start();
  void stop() { feed_.stop(); }

  [[nodiscard]] planner::CatalogPtr current() const override { return feed_.current(); }
  void refresh(const std::string& reason, std::function<void()> done) override;

 private:
  std::shared_ptr<MapService> maps_;
  executor::CatalogFeed feed_;
};

}  // namespace kintsugi::app
