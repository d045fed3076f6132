// What is made of passwords and of what is stored for them: SASLprep, base64, stored verifiers, md5.
#include <algorithm>

#include "tests/fuzz/target.h"
#include "wire/saslprep.h"
#include "wire/scram.h"
#include "wire/scram_crypto.h"

namespace kintsugi::wire {
namespace {

void fuzz(std::string_view input) {
  Secret prepared = saslprep(input);
  if (std::all_of(input.begin(), input.end(), [](char c) { return c >= 0; }))
    CHECK_THAT(prepared.reveal() == input);
  CHECK_THAT(prepared.empty() == input.empty());

  if (auto raw = scram::from_base64(input)) CHECK_THAT(scram::base64(*raw) == input);
  CHECK_THAT(scram::from_base64(scram::base64(input)) == input);

  if (auto verifier = ScramVerifier::parse(input)) {
    CHECK_THAT(verifier->iterations > 0 && !verifier->salt.empty());
    CHECK_THAT(ScramVerifier::parse(verifier->to_string()) == *verifier);
  } else {
    CHECK_THAT(verifier.error().sqlstate == "22023");
  }
  CHECK_THAT(md5_response(input, input, input).size() == 35);
}

std::vector<std::string> seeds() {
  return {
      "password",
      "I\xC2\xADX",
      "\xE2\x85\xA8",
      "\xEF\xB7\xBA",
      "\xD8\xA7\x31",
      "a\xC2\xA0z",
      "e\xCC\x81\xCC\x82",
      "\xEA\xB0\x80\xE1\x84\x80\xE1\x85\xA1",
      "QUJDRA==",
      std::string("SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:")
          .append("wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU=")};
}
}  // namespace
}  // namespace kintsugi::wire

KINTSUGI_FUZZ_TARGET(wire_passwords, kintsugi::wire::fuzz, kintsugi::wire::seeds)
