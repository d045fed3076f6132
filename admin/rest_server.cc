#include "admin/rest_server.h"

#include <atomic>
#include <mutex>
#include <thread>

#include "admin/allowance.h"
#include "admin/console_page.h"
#include "admin/guests.h"
#include "admin/http_listener.h"
#include "admin/metrics.h"
#include "admin/openapi.h"
#include "admin/operation.h"
#include "admin/preconditions.h"
#include "admin/problem.h"
#include "admin/request_head.h"
#include "admin/shared_tokens.h"
#include "admin/store_glance.h"
#include "admin/token_file.h"
#include "base/io/socket.h"
#include "base/log.h"

namespace kintsugi::admin {
namespace {

using namespace std::chrono_literals;

constexpr const char* kAnyPath = R"([\s\S]*)";     // a dot is no line break, which a name may have
constexpr std::size_t kGuestsMax = 256;            // each has a thread
constexpr int kAtOnceMax = 32, kWaitingMax = 128;  // operations: what is left is for health and metrics
constexpr auto kWaitForOthers = 10s;
constexpr std::size_t kBodyMax = 1 << 20;
constexpr std::size_t kFileMax = std::size_t{512} << 20;  // of an import: a million shardlets
constexpr auto kRequestTimeout = 1h;                      // adopting a large table reads every key of it
constexpr int kStreamsMax = 8;                            // of job events: each has a thread
constexpr auto kStreamPoll = 200ms;
constexpr int kStreamQuietPolls = 75;    // then a comment shows whether the reader is still there
constexpr auto kGlancePatience = 500ms;  // metrics wait so long for what the map store knows
constexpr double kRequestsASecond = 500, kRequestsAtOnce = 1000;  // from one address
constexpr double kGlancesASecond = 50, kGlancesAtOnce = 200;      // at health and metrics, by one address
constexpr double kRefusalsASecond = 5, kRefusalsAtOnce = 50;

// Command layers that nobody uses right now.
class Layers {
 public:
  explicit Layers(std::shared_ptr<const Surroundings> surroundings) : surroundings_(std::move(surroundings)) {}

  std::unique_ptr<CommandLayer> take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<CommandLayer>(surroundings_);
    auto layer = std::move(idle_.back());
    idle_.pop_back();
    return layer;
  }
  void give_back(std::unique_ptr<CommandLayer> layer) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(layer));
  }

 private:
  std::shared_ptr<const Surroundings> surroundings_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<CommandLayer>> idle_;
};

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void answer_problem(httplib::Response& response, const Error& error, int status) {
  response.status = status;
  response.set_content(dumped(problem_json(error, status)), "application/problem+json");
  if (status == 401) response.set_header("WWW-Authenticate", "Bearer");
  if (status == 429) response.set_header("Retry-After", "1");
}

std::string value_of(const Json& json, const char* member) {
  return json.contains(member) ? json[member].dump() : "";
}

std::string path_of(const httplib::Request& request) {
  return request.target.substr(0, request.target.find_first_of("?#"));
}

// A parameter that nobody knows would be a filter that filters nothing.
Status known_parameters(const Operation& operation, const httplib::Request& request) {
  const std::vector<std::string_view> known = parameters_in_query(operation);
  for (const auto& [name, value] : request.params) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string hint;
    for (const std::string_view each : known) hint += (hint.empty() ? "" : ", ") + std::string(each);
    return fail(sqlstate::kInvalidParameter, "there is no parameter \"" + name.substr(0, 60) + "\" here",
                hint.empty() ? "" : "There is: " + hint + ".");
  }
  return {};
}

// Where what was made is: of a job, and of what has a name.
std::string location_of(const Operation& operation, const httplib::Request& request, const Json& body) {
  const std::string path = path_of(request);
  if (operation.answer == "job" && body.contains("id"))
    return operation.path == "/v1/jobs" ? path + "/" + body["id"].dump() : "";
  if (operation.success != 201 || !body.contains("name")) return {};
  return path + "/" + in_path(body["name"].get<std::string>());
}

// All headers of one name, as one list.
std::string list_in(const httplib::Request& request, const char* header) {
  std::string all;
  for (std::size_t i = 0; i < request.get_header_value_count(header); ++i)
    all += (i == 0 ? "" : ", ") + request.get_header_value(header, i);
  return all;
}

Error it_is_there() {
  return {.sqlstate = std::string(kEpochMoved),
          .message = "it is there, and If-None-Match wants that it is not",
          .hint = "Leave the header out to have it as it is."};
}

// The conditions that can only be told with the answer: of what was looked at, and of what was to be made new.
Status still_holds(const Operation& operation, const RestAnswer& answer, const Preconditions& conditions) {
  if (operation.method == "GET" && has_epoch(operation) && answer.epoch != 0)
    KG_CHECK((EpochCondition{conditions.epoch.one_of, conditions.epoch.wanted, {}}.check(answer.epoch)));
  const bool was_there = operation.success == 201 && answer.status == 200;
  if (conditions.none && was_there) return fail(it_is_there());
  return {};
}

}  // namespace

struct RestServer::Parts {
  RestOptions options;
  std::shared_ptr<const Surroundings> surroundings;
  std::string token;
  std::string address;
  Layers layers;
  Allowances requests{kRequestsASecond, kRequestsAtOnce};
  Allowances glances{kGlancesASecond, kGlancesAtOnce};
  Allowance refusals{kRefusalsASecond, kRefusalsAtOnce};
  Seats seats{kAtOnceMax, kWaitingMax, kWaitForOthers};
  std::atomic<int> streams{0};
  std::atomic<bool> stopping{false};
  SharedTokens users;
  std::unique_ptr<HttpListener> server;
  std::thread listener;
  StoreGlance glance{[this] { return ask_the_store(); }, kGlancePatience};  // last: it uses what is above

  Parts(RestOptions o, std::shared_ptr<const Surroundings> s)
      : options(std::move(o)), surroundings(s), layers(s), users(options.user_file, std::move(s)) {}

  [[nodiscard]] std::optional<Actor> actor_of(const httplib::Request& request);
  [[nodiscard]] OfTheStore ask_the_store();
  [[nodiscard]] OfTheStore of_the_store();

  void set_up();
  bool admit(const httplib::Request& request, httplib::Response& response);
  bool open_to_all(const httplib::Request& request, httplib::Response& response);
  void serve(const httplib::Request& request, httplib::Response& response);
  void run(const Routed& routed, const httplib::Request& request, httplib::Response& response);
  void stream_job(RestAnswer first, httplib::Response& response);
  bool stream_step(const std::string& id, std::string& last, int& quiet, httplib::DataSink& sink);
  static void write(const Operation& operation, RestAnswer answer, const Preconditions& conditions,
                    const httplib::Request& request, httplib::Response& response);
};

void RestServer::Parts::set_up() {
  httplib::Server& http = *server;
  http.set_payload_max_length(kFileMax);
  http.set_default_headers({{"X-Content-Type-Options", "nosniff"}, {"Cache-Control", "no-store"}});
  http.set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
    if (admit(request, response)) return httplib::Server::HandlerResponse::Unhandled;
    // What was not read of the request must not be taken for the next one.
    response.set_header("Connection", "close");
    Guests::is_last_request();
    return httplib::Server::HandlerResponse::Handled;
  });
  const auto handler = [this](const httplib::Request& request, httplib::Response& response) {
    const Guests::AtWork working;
    serve(request, response);
  };
  http.Get(kAnyPath, handler);
  http.Post(kAnyPath, handler);
  http.Put(kAnyPath, handler);
  http.Patch(kAnyPath, handler);
  http.Delete(kAnyPath, handler);
  http.Options(kAnyPath, handler);
  http.set_error_handler([](const httplib::Request&, httplib::Response& response) {
    if (!response.body.empty()) return;
    // It could not be read: nor can it be told where the next one begins.
    response.set_header("Connection", "close");
    Guests::is_last_request();
    Error error{.sqlstate = std::string(sqlstate::kInvalidParameter),
                .message = "this is no request that can be read"};
    if (response.status == 413) error = {.sqlstate = "54000", .message = "the request is too large"};
    answer_problem(response, error, response.status);
  });
}

// Everything that can be refused before the body is read is refused here.
bool RestServer::Parts::admit(const httplib::Request& request, httplib::Response& response) {
  const auto refuse = [&response](int status, const Error& error) {
    answer_problem(response, error, status);
    return false;
  };
  const std::string path = path_of(request);
  const bool at_a_glance = path == "/healthz" || path == "/readyz" || path == "/metrics";
  Guests::head_is_read(false);
  if (!(at_a_glance ? glances : requests).take(request.remote_addr)) {
    return refuse(429, {.sqlstate = std::string(sqlstate::kLimitReached), .message = "too many requests"});
  }
  if (path.starts_with("/v1/") || path == "/v1") {
    const std::string given = request.get_header_value("Authorization");
    bool good = actor_of(request).has_value();
    if (!good && !refusals.take()) {
      return refuse(429,
                    {.sqlstate = std::string(sqlstate::kLimitReached), .message = "too many wrong tokens"});
    }
    if (!good) {
      users.look_for_news();
      good = actor_of(request).has_value();
    }
    if (!good) {
      return refuse(401, {.sqlstate = std::string(sqlstate::kInvalidAuthorization),
                          .message = given.empty() ? "no token was given" : "the token is wrong",
                          .hint = "Send the header \"Authorization: Bearer TOKEN\"; the token is in the "
                                  "file that admin.token_file names, or was told by kintsugi user add."});
    }
    Guests::head_is_read(true);
  }
  // What is unpacked may be a thousand times as large.
  if (const std::string coding = request.get_header_value("Content-Encoding");
      !coding.empty() && coding != "identity") {
    return refuse(415, {.sqlstate = std::string(sqlstate::kInvalidParameter),
                        .message = "the body is packed with " + coding.substr(0, 20),
                        .hint = "Send it as it is, without the header Content-Encoding."});
  }
  const std::size_t most = path == "/v1/import" ? kFileMax : kBodyMax;
  const std::string length = request.get_header_value("Content-Length");
  const bool unknown = request.has_header("Transfer-Encoding");
  if (unknown || length.size() > 12 || (!length.empty() && std::strtoull(length.c_str(), nullptr, 10) > most)) {
    return refuse(unknown ? 411 : 413,
                  {.sqlstate = "54000",
                   .message = unknown ? "the length of the body is not said" : "the body is too large",
                   .hint = "At most " + std::to_string(most) + " bytes, with a Content-Length."});
  }
  // Without a length there is no body (RFC 9112); httplib would read until the client goes away. curl -X POST.
  if (length.empty()) const_cast<httplib::Request&>(request).headers.emplace("Content-Length", "0");
  return true;
}

// Whose token it is: the file's is an admin's.
std::optional<Actor> RestServer::Parts::actor_of(const httplib::Request& request) {
  const std::string given = request.get_header_value("Authorization");
  const std::string theirs(bearer_token(given));
  if (theirs.empty()) return std::nullopt;
  if (is_token(theirs, token)) return Actor{"admin token", Role::kAdmin, Face::kRest};
  const auto owner = users.owner_of(theirs);
  if (!owner) return std::nullopt;
  return Actor{owner->name, owner->role, Face::kRest};
}

// For metrics, in the thread of the glance.
OfTheStore RestServer::Parts::ask_the_store() {
  OfTheStore found;
  auto layer = layers.take();
  const Actor actor{"metrics", Role::kViewer, Face::kRest};
  for (const auto& [what, into] : {std::pair(command::Show::What::kRouters, &found.routers),
                                   std::pair(command::Show::What::kJobs, &found.jobs)}) {
    command::Show show;
    show.what = what;
    auto answer = layer->run(show, actor, {.deadline = Deadline::in(2s), .epoch = {}, .canceled = nullptr});
    if (!answer) break;
    *into = std::move(answer->objects);
  }
  layers.give_back(std::move(layer));
  return found;
}

// Not worth waiting for when the store is away.
OfTheStore RestServer::Parts::of_the_store() {
  if (surroundings->store_reachable && !surroundings->store_reachable()) return {};
  return glance.look();
}

bool RestServer::Parts::open_to_all(const httplib::Request& request, httplib::Response& response) {
  const OpenPage* page = open_page(path_of(request));
  if (page == nullptr || (request.method != "GET" && request.method != "HEAD")) return false;
  std::string body;
  switch (page->what) {
    case OpenPage::What::kHealth: {
      // Alive is a router whose threads do what they are asked.
      const bool serving = !surroundings->serving || surroundings->serving();
      const bool alive = !serving || !surroundings->load || surroundings->load().has_value();
      response.status = alive ? 200 : 503;
      body = dumped({{"status", alive ? "alive" : "a thread does not answer"}});
      break;
    }
    case OpenPage::What::kReadiness: {
      const Json ready = readiness(*surroundings);
      response.status = ready["ready"].get<bool>() ? 200 : 503;
      body = dumped(ready);
      break;
    }
    case OpenPage::What::kMetrics: body = metrics_text(*surroundings, of_the_store()); break;
    case OpenPage::What::kConsole:
      response.set_header("Content-Security-Policy",
                          "default-src 'self' 'unsafe-inline'; img-src data:; frame-ancestors 'none'");
      response.set_header("Referrer-Policy", "no-referrer");
      body = console_page();
      break;
    case OpenPage::What::kDescription: body = dumped(openapi_document(options.version)); break;
  }
  response.set_content(body, std::string(page->type));
  return true;
}

void RestServer::Parts::serve(const httplib::Request& request, httplib::Response& response) {
  try {
    if (open_to_all(request, response)) return;
    const std::string method = request.method == "HEAD" ? "GET" : request.method;
    const Routed routed = route(method, path_of(request));
    if (routed.operation != nullptr) return run(routed, request, response);
    const std::string allowed = open_page(path_of(request)) != nullptr ? "GET" : routed.allowed;
    if (!allowed.empty()) {
      response.set_header("Allow", allow_header(allowed));
      if (method == "OPTIONS") {
        response.status = 204;
        return;
      }
      return answer_problem(response, {.sqlstate = "42704", .message = "this path is for " + allowed}, 405);
    }
    answer_problem(
        response,
        {.sqlstate = "42704", .message = "there is nothing here", .hint = "/openapi.json lists what there is."},
        404);
  } catch (const std::exception& error) {
    log::error("a REST request failed inside", {{"path", path_of(request)}, {"error", error.what()}});
    answer_problem(response, {.sqlstate = "XX000", .message = "the request could not be answered"}, 500);
  }
}

void RestServer::Parts::run(const Routed& routed, const httplib::Request& request,
                            httplib::Response& response) {
  const Operation& operation = *routed.operation;
  if (!request.body.empty() && operation.body != "file" &&
      !is_json(request.get_header_value("Content-Type"), request.method == "PATCH")) {
    return answer_problem(response,
                          {.sqlstate = std::string(sqlstate::kInvalidParameter),
                           .message = "the body's type is not application/json",
                           .hint = "Send the header \"Content-Type: application/json\"."},
                          415);
  }
  const auto actor = actor_of(request);
  if (!actor || actor->role < operation.role) {
    const Error denied{
        .sqlstate = "42501",
        .message = "this is for the role " + std::string(name_of(operation.role)) +
                   (actor ? ", and " + actor->name + " is " + std::string(name_of(actor->role)) : ""),
        .hint = "kintsugi user add NAME --role " + std::string(name_of(operation.role)) +
                " makes a token with it."};
    auto layer = layers.take();
    if (actor) layer->note(request.method + " " + path_of(request).substr(0, 200), *actor, &denied);
    layers.give_back(std::move(layer));
    return answer_problem(response, denied, 403);
  }
  if (const Status known = known_parameters(operation, request); !known)
    return answer_problem(response, known.error(), 400);
  const bool looks = operation.method == "GET", makes = operation.method == "POST";
  const std::string match = list_in(request, "If-Match");
  auto conditions = read_preconditions(match, list_in(request, "If-None-Match"));
  if (!conditions && looks) conditions = read_preconditions(match, "");  // it would only have saved an answer
  if (!conditions) return answer_problem(response, conditions.error(), 412);
  if (conditions->none && !looks && !makes) return answer_problem(response, it_is_there(), 412);
  const Seats::Taken seat(seats);
  if (!seat) {
    return answer_problem(response,
                          {.sqlstate = std::string(sqlstate::kLimitReached),
                           .message = "too many requests are being answered right now"},
                          429);
  }
  auto layer = layers.take();
  RestRequest what{.path = routed.path,
                   .query = {request.params.begin(), request.params.end()},
                   .body = request.body,
                   .actor = *actor,
                   .run = {.deadline = Deadline::in(kRequestTimeout), .epoch = {}, .canceled = nullptr},
                   .surroundings = *surroundings,
                   .users = users,
                   .layer = *layer};
  if (!looks && conditions->given()) what.run.epoch = conditions->epoch;
  Result<RestAnswer> answer = operation.run(what);
  layers.give_back(std::move(layer));
  if (answer) {
    const Status holds = still_holds(operation, *answer, *conditions);
    if (!holds) return answer_problem(response, holds.error(), 412);
  }
  if (answer && operation.answer == "jobEvents") return stream_job(*std::move(answer), response);
  if (!answer) return answer_problem(response, answer.error(), http_status(answer.error()));
  write(operation, *std::move(answer), *conditions, request, response);
}

// Server-sent events: the job now, then whenever something of it has changed, to its end.
void RestServer::Parts::stream_job(RestAnswer first, httplib::Response& response) {
  if (streams.fetch_add(1) >= kStreamsMax) {
    streams.fetch_sub(1);
    return answer_problem(
        response,
        {.sqlstate = std::string(sqlstate::kLimitReached), .message = "too many streams of job events"}, 429);
  }
  struct Stream {
    std::string id, last;
    int quiet = 0;
  };
  auto stream = std::make_shared<Stream>(Stream{value_of(first.body, "id"), "", 0});
  response.set_chunked_content_provider(
      "text/event-stream",
      [this, stream](std::size_t, httplib::DataSink& sink) {
        return stream_step(stream->id, stream->last, stream->quiet, sink);
      },
      [this](bool) { streams.fetch_sub(1); });
}

bool RestServer::Parts::stream_step(const std::string& id, std::string& last, int& quiet,
                                    httplib::DataSink& sink) {
  const Guests::AtWork working;
  if (!last.empty()) std::this_thread::sleep_for(kStreamPoll);
  command::Show show;
  show.what = command::Show::What::kJobs;
  show.name = id;
  auto layer = layers.take();
  const auto job = layer->run(show, {"admin token", Role::kAdmin, Face::kRest},
                              {.deadline = Deadline::in(10s), .epoch = {}, .canceled = nullptr});
  layers.give_back(std::move(layer));
  if (!job || job->objects.empty() || stopping) {
    sink.done();
    return true;
  }
  std::string now = dumped(job->objects[0]);
  std::string event;
  if (now != last) {
    event = "event: job\ndata: " + now + "\n";
    last = std::move(now);
    quiet = 0;
  } else if (++quiet % kStreamQuietPolls == 0) {
    event = ": still there\n\n";
  }
  if (!event.empty() && !sink.write(event.data(), event.size())) return false;
  const std::string state = job->objects[0].value("state", "");
  if (state == "done" || state == "failed" || state == "canceled") sink.done();
  return true;
}

void RestServer::Parts::write(const Operation& operation, RestAnswer answer, const Preconditions& conditions,
                              const httplib::Request& request, httplib::Response& response) {
  response.status = answer.status;
  if (answer.epoch != 0 && has_epoch(operation)) {
    const std::string tag = "\"" + std::to_string(answer.epoch) + "\"";
    response.set_header("ETag", tag);
    if (operation.method == "GET" && conditions.not_modified(answer.epoch)) {
      response.status = 304;
      return;
    }
  }
  if (const std::string location = location_of(operation, request, answer.body); !location.empty())
    response.set_header("Location", location);
  if (!answer.notices.empty() && answer.body.is_object()) answer.body["notices"] = answer.notices;
  if (answer.status == 204) return;
  if (operation.answer == "file") return response.set_content(answer.text, "text/plain; charset=utf-8");
  response.set_content(dumped(answer.body), "application/json");
}

RestServer::RestServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Result<std::unique_ptr<RestServer>> RestServer::start(const RestOptions& options,
                                                      std::shared_ptr<const Surroundings> surroundings) {
  auto parts = std::make_unique<Parts>(options, std::move(surroundings));
  KG_TRY(parts->token, read_or_make_token(options.token_file));
  KG_CHECK(parts->users.start());
  KG_TRY(io::HostPort at, io::parse_host_port(options.listen));
  if (options.tls_cert.empty() != options.tls_key.empty()) {
    return fail(sqlstate::kInvalidParameter, "admin.tls_cert and admin.tls_key belong together",
                "Set both, or neither.");
  }
  std::unique_ptr<RestCertificate> certificate;
  if (!options.tls_cert.empty()) {
    certificate = std::make_unique<RestCertificate>(options.tls_cert, options.tls_key);
    KG_CHECK(certificate->load());
  }
  parts->server = std::make_unique<HttpListener>(kGuestsMax, std::move(certificate));
  parts->set_up();
  const int port = parts->server->bind(at.host, at.port);
  if (port < 0) {
    return fail("55006", "cannot listen on " + options.listen + " for REST",
                "Give another address with admin.listen.");
  }
  at.port = static_cast<decltype(at.port)>(port);
  parts->address = at.to_string();
  Parts* its = parts.get();
  parts->listener = std::thread([its] { its->server->listen_after_bind(); });
  return std::unique_ptr<RestServer>(new RestServer(std::move(parts)));
}

RestServer::~RestServer() {
  // listen_after_bind() may not have begun: stop() before it has would be forgotten.
  while (!parts_->server->is_running()) std::this_thread::sleep_for(1ms);
  parts_->stopping = true;
  parts_->server->stop();
  parts_->listener.join();
}

void RestServer::reload_tls() {
  RestCertificate* certificate = parts_->server->certificate();
  if (certificate == nullptr) return;
  if (const Status loaded = certificate->load(); !loaded) {
    log::error("the certificate of the admin listener was not reloaded and the old one stays",
               {{"error", loaded.error().message}});
  }
}

const std::string& RestServer::address() const {
  return parts_->address;
}

}  // namespace kintsugi::admin
