#include "app/catalog_service.h"

#include "base/log.h"
#include "frontend/server.h"

namespace kintsugi::app {
namespace {

using namespace std::chrono_literals;

constexpr auto kStartPatience = 5s;

}  // namespace

CatalogService::CatalogService(std::shared_ptr<MapService> maps)
    : maps_(std::move(maps)),
      feed_([its = maps_] { return its->current(); },
            [its = maps_](const planner::CatalogPtr& catalog) {
              its->with_server([&catalog](frontend::Server& server) { server.deliver(catalog); });
            }) {}

void CatalogService::start() {
  feed_.start(kStartPatience);
}

void CatalogService::refresh(const std::string& reason, std::function<void()> done) {
  log::debug("the catalogue is read again", {{"because", reason}});
  feed_.refresh(std::move(done));
}

}  // namespace kintsugi::app
