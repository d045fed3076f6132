// A page of a list, and the lists of show() that are about routers and not about the map (show_router.cc).
// Private to admin/commands/.
#pragma once

#include <string>

#include "admin/commands/show.h"

namespace kintsugi::admin {

// Takes objects in the order of the list and keeps those of the page.
class Page {
 public:
  Page(const command::Show& request, CommandResult& result) : request_(request), result_(result) {}

  // `at` says where the list goes on after it. False: the page is full.
  bool add(Json object, const std::string& at) {
    if (request_.limit != 0 && result_.objects.size() == request_.limit) {
      result_.next = last_;
      return false;
    }
    result_.objects.push_back(std::move(object));
    last_ = at;
    return true;
  }

 private:
  const command::Show& request_;
  CommandResult& result_;
  std::string last_;
};

// Where a list goes on whose pages are counted; 22023 when it is no number.
Result<std::uint64_t> counted_place(const std::string& after);

Status show_routers(const command::Show& request, const Surroundings& surroundings, const OpenStore& store,
                    Deadline deadline, CommandResult& result);
Status show_pools(const command::Show& request, const Surroundings& surroundings, CommandResult& result);
Status show_stats(const command::Show& request, const Surroundings& surroundings, CommandResult& result);
Status show_slow(const command::Show& request, const Surroundings& surroundings, CommandResult& result);
Status show_audit(const command::Show& request, const Surroundings& surroundings, const OpenStore& store,
                  Deadline deadline, CommandResult& result);

}  // namespace kintsugi::admin
