// A webhook: where a notice is POSTed to, in the clear or over TLS.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"
#include "base/time.hpp"

namespace loam::daemon {

// "http://HOST[:PORT][/PATH][?QUERY]" or the same with https.
inline bool is_webhook(std::string_view channel) {
  return channel.starts_with("http://") || channel.starts_with("https://");
}
// Whether it can be one; the error says what is wrong with it.
Result<void> check_webhook(const std::string& channel);

struct WebhookPost {
  std::string json;
  std::string id;       // the header Loam-Notice: the same for each try
  std::string ca_file;  // authorities besides the system's; empty: none
  Duration patience;    // for an answer
};
// Blocks. Any answer but 2xx is an error.
Result<void> post_webhook(const std::string& channel, const WebhookPost& post);

}  // namespace loam::daemon
