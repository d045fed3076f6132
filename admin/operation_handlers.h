// One function an operation. Private to admin/.
#pragma once

#include "admin/operation.h"

namespace kintsugi::admin::handlers {

using Answer = Result<RestAnswer>;

// Runs a command; the answer is its rows as {"items", "next"}.
Answer run_list(RestRequest& request, const Command& command);
// The answer is its one row.
Answer run_one(RestRequest& request, const Command& command, int status = 200);
// A page of a list, as ?limit= and ?after= say.
Result<command::Show> show_page(const RestRequest& request, command::Show::What what);

Answer list_shards(RestRequest& request);
Answer create_shard(RestRequest& request);
Answer get_shard(RestRequest& request);
Answer change_shard(RestRequest& request);
Answer drop_shard(RestRequest& request);
Answer list_maps(RestRequest& request);
Answer create_map(RestRequest& request);
Answer get_map(RestRequest& request);
Answer drop_map(RestRequest& request);
Answer lookup_key(RestRequest& request);
Answer list_shardlets(RestRequest& request);
Answer create_shardlet(RestRequest& request);
Answer get_shardlet(RestRequest& request);
Answer change_shardlet(RestRequest& request);
Answer drop_shardlet(RestRequest& request);
Answer list_tables(RestRequest& request);
Answer place_table(RestRequest& request);
Answer get_table(RestRequest& request);
Answer unplace_table(RestRequest& request);

Answer list_jobs(RestRequest& request);
Answer start_job(RestRequest& request);
Answer get_job(RestRequest& request);
Answer cancel_job(RestRequest& request);
Answer resume_job(RestRequest& request);
Answer list_routers(RestRequest& request);
Answer list_statistics(RestRequest& request);
Answer list_pools(RestRequest& request);
Answer list_audit(RestRequest& request);
Answer list_slow(RestRequest& request);
Answer explain(RestRequest& request);
Answer list_users(RestRequest& request);
Answer add_user(RestRequest& request);
Answer remove_user(RestRequest& request);
Answer get_epoch(RestRequest& request);
Answer check(RestRequest& request);
Answer resolve(RestRequest& request);
Answer rebuild(RestRequest& request);
Answer export_map(RestRequest& request);
Answer import_map(RestRequest& request);

}  // namespace kintsugi::admin::handlers
