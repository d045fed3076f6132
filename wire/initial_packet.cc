// The packets that come before a type byte exists, read by the rules of PostgreSQL's own postmaster.
#include <algorithm>

#include "wire/client_messages.h"

namespace kintsugi::wire {

namespace {
constexpr std::uint32_t kSslCode = 80877103, kGssEncCode = 80877104, kCancelCode = 80877102;
constexpr std::uint32_t kVersion3 = 3 << 16;

Result<StartupMessage> read_startup(std::string_view body) {
  StartupMessage startup;
  startup.major = load_u16(body.data());
  startup.minor = load_u16(body.data() + 2);
  if (startup.major != 3)
    return fail(sqlstate::kNotSupported, "unsupported frontend protocol " + std::to_string(startup.major) +
                                             "." + std::to_string(startup.minor) +
                                             ": server supports 3.0 to 3.0");
  // Pairs of strings, closed by an empty name that is the packet's last byte.
  std::string_view rest = body.substr(4);
  auto layout = [] {
    return frame_error::violation("invalid startup packet layout: expected terminator as last byte");
  };
  while (!rest.empty() && rest[0] != '\0') {
    std::size_t name_end = rest.find('\0');
    if (name_end == std::string_view::npos) return layout();
    std::size_t value_end = rest.find('\0', name_end + 1);
    if (value_end == std::string_view::npos) return layout();
    startup.parameters.emplace_back(rest.substr(0, name_end),
                                    rest.substr(name_end + 1, value_end - name_end - 1));
    rest.remove_prefix(value_end + 1);
  }
  if (rest.size() != 1) return layout();
  return startup;
}
}  // namespace

std::string_view StartupMessage::get(std::string_view name) const {
  auto it =
      std::find_if(parameters.rbegin(), parameters.rend(), [&](const auto& p) { return p.first == name; });
  return it == parameters.rend() ? std::string_view() : std::string_view(it->second);
}

Result<std::string_view> StartupMessage::user() const {
  std::string_view name = get("user");
  if (name.empty())
    return fail(sqlstate::kInvalidAuthorization, "no PostgreSQL user name specified in startup packet");
  return name;
}

std::string_view StartupMessage::database() const {
  std::string_view name = get("database");
  return name.empty() ? get("user") : name;
}

std::vector<std::string_view> StartupMessage::protocol_options() const {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : parameters)
    if (name.starts_with("_pq_.")) names.emplace_back(name);
  return names;
}

Result<std::optional<InitialPacketRead>> read_initial_packet(std::string_view bytes) {
  if (bytes.size() < 4) return std::optional<InitialPacketRead>();
  std::uint32_t length = load_u32(bytes.data());
  if (length < 8 || length - 4 > kMaxInitialPacket)
    return frame_error::violation("invalid length of startup packet");
  if (bytes.size() < length) return std::optional<InitialPacketRead>();
  std::string_view body = bytes.substr(4, length - 4);
  switch (load_u32(body.data())) {
    case kSslCode: return InitialPacketRead{SslRequest{}, length};
    case kGssEncCode: return InitialPacketRead{GssEncRequest{}, length};
    case kCancelCode:
      if (body.size() != 12) return frame_error::violation("invalid length of query cancel packet");
      return InitialPacketRead{CancelRequest{load_u32(body.data() + 4), load_u32(body.data() + 8)}, length};
    default: break;
  }
  KG_TRY(auto startup, read_startup(body));
  return InitialPacketRead{std::move(startup), length};
}

namespace {
// The packets of this kind have a length and no type byte.
void append_untyped(std::string& out, std::string_view body) {
  char length[4];
  store_u32(length, static_cast<std::uint32_t>(body.size() + 4));
  out.append(length, 4).append(body);
}
void append_code(std::string& body, std::uint32_t code) {
  char raw[4];
  store_u32(raw, code);
  body.append(raw, 4);
}
}  // namespace

void append_startup(std::string& out, std::span<const std::pair<std::string, std::string>> parameters) {
  std::string body;
  append_code(body, kVersion3);
  for (const auto& [name, value] : parameters) {
    // A zero inside would start another parameter; an empty name would end the list.
    if (name.empty() || name[0] == '\0') continue;
    body.append(name.c_str()).push_back('\0');
    body.append(value.c_str()).push_back('\0');
  }
  body.push_back('\0');
  append_untyped(out, body);
}

void append_ssl_request(std::string& out) {
  std::string body;
  append_code(body, kSslCode);
  append_untyped(out, body);
}

void append_cancel_request(std::string& out, CancelRequest request) {
  std::string body;
  append_code(body, kCancelCode);
  append_code(body, request.pid);
  append_code(body, request.secret);
  append_untyped(out, body);
}

}  // namespace kintsugi::wire
