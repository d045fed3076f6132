// A port for a server of this test: nobody listens on it, it is outside of what the kernel gives to outgoing
// connections, and no other test on the machine, of this language or of Python, is given it while this process
// lives. Any thread may call; throws std::runtime_error when there is none.
#pragma once

namespace kintsugi::pgtest {

[[nodiscard]] int free_port();

}  // namespace kintsugi::pgtest
