// loam-engine: serves one model on a Unix socket until SIGTERM or SIGINT. Clients speak the
// protocol of docs/formats/engine-wire.md. Exit status: 0 ended by a signal, 1 failed, 2 wrong
// arguments, 3 its model cannot be served: the file is not whole, not known or too large.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "app/engine/server.hpp"

namespace {

using loam::serve::Model;
using loam::serve::ServerOptions;

constexpr const char* usage =
    "usage: loam-engine --model FILE --socket PATH [options]\n"
    "Serves a GGUF model to many clients at once: one copy of the weights, continuous batching,\n"
    "shared prefixes, fairness by tokens.\n"
    "  --name NAME          what the model is called (default: the file's name)\n"
    "  --slots N            requests computed at once (default 8)\n"
    "  --context N          tokens of one request, prompt and answer (default 512)\n"
    "  --cells N            share N tokens among all slots instead of --context for each\n"
    "  --overcommit PERCENT of the shared cells that may be promised (default 100)\n"
    "  --cache-mib N        host memory for prefixes and swapped streams (default 256; 0: none)\n"
    "  --memory-mib N       refuse a model file larger than this (default 0: no bound)\n"
    "  --chunk N            prompt tokens in a step without streams (default 32)\n"
    "  --gap-factor N       a step with a prompt lasts at most so many without (default 5)\n"
    "  --threads N          for the model's maths (default 1; more than the cores that are\n"
    "                       free makes it many times slower)\n"
    "  --max-tokens N       to generate where a request does not say (default 256)\n"
    "  --waiting N          requests that may wait before more are refused (default 1024)\n"
    "  --drain-seconds N    at its end, streams that run may go on for so long (default 0)\n"
    "  --adapter NAME=FILE  a LoRA adapter that requests may name; repeatable\n"
    "  --usage FILE         append what each request used, a line of JSON each\n"
    "  --unshared           keep no prefixes and serve first come, first served (to compare)\n";

std::atomic<bool> stopping{false};
void stop(int) {
  stopping = true;
}

struct Arguments {
  Model::Options model;
  ServerOptions server;
};

// The number after an option, or nothing with a message.
bool number(std::string_view option, const char* text, std::uint64_t least, std::uint64_t most,
            std::uint64_t& value) {
  char* end = nullptr;
  value = std::strtoull(text, &end, 10);
  if (*text >= '0' && *text <= '9' && *end == '\0' && value >= least && value <= most) return true;
  std::fprintf(stderr, "loam-engine: %s is '%s'; give a whole number from %llu to %llu\n",
               std::string(option).c_str(), text, static_cast<unsigned long long>(least),
               static_cast<unsigned long long>(most));
  return false;
}

bool take_number(std::string_view option, const char* text, Arguments& out) {
  loam::infer::BatcherConfig& batching = out.server.instance.batching;
  std::uint64_t value = 0;
  const auto small = [&](std::uint32_t& target, std::uint64_t least, std::uint64_t most) {
    if (!number(option, text, least, most, value)) return false;
    target = static_cast<std::uint32_t>(value);
    return true;
  };
  if (option == "--slots") return small(batching.slots, 1, 256);
  if (option == "--context") return small(batching.cells_per_slot, 1, 1U << 20U);
  if (option == "--chunk") return small(batching.chunk_tokens, 1, 512);
  if (option == "--gap-factor") return small(batching.gap_factor, 2, 1000);
  if (option == "--max-tokens") return small(out.server.tokens_max_default, 1, 1U << 20U);
  if (option == "--waiting") return small(out.server.waiting_max, 1, 1U << 20U);
  if (option == "--cells") {
    batching.unified = true;
    return small(batching.cells, 1, 1U << 24U);
  }
  if (option == "--overcommit") {
    if (!small(batching.overcommit_permille, 100, 10'000)) return false;
    batching.overcommit_permille *= 10;
    return true;
  }
  if (option == "--threads") {
    if (!number(option, text, 1, 256, value)) return false;
    out.server.instance.threads = static_cast<int>(value);
    return true;
  }
  if (option == "--drain-seconds") {
    if (!number(option, text, 0, 86'400, value)) return false;
    out.server.drain_max = std::chrono::seconds(value);
    return true;
  }
  if (!number(option, text, 0, 1U << 24U, value)) return false;
  (option == "--cache-mib" ? batching.cache_bytes_max : out.model.memory_bytes_max) = value << 20U;
  return true;
}

bool take(std::string_view option, const char* text, Arguments& out) {
  if (option == "--model") {
    out.model.path = text;
  } else if (option == "--socket") {
    out.server.socket_path = text;
  } else if (option == "--name") {
    out.server.model_name = text;
  } else if (option == "--usage") {
    out.server.usage_path = text;
  } else if (option == "--adapter") {
    const std::string_view pair = text;
    const std::size_t equals = pair.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == pair.size()) {
      std::fprintf(stderr, "loam-engine: --adapter is '%s'; give NAME=FILE\n", text);
      return false;
    }
    out.model.adapters.emplace(pair.substr(0, equals), pair.substr(equals + 1));
  } else {
    return take_number(option, text, out);
  }
  return true;
}

bool known(std::string_view option) {
  for (const char* name :
       {"--model", "--socket", "--name", "--usage", "--adapter", "--slots", "--context", "--cells",
        "--overcommit", "--cache-mib", "--memory-mib", "--chunk", "--gap-factor", "--threads",
        "--max-tokens", "--waiting", "--drain-seconds"}) {
    if (option == name) return true;
  }
  return false;
}

// Exit status 2 where the arguments are off, 0 after help, -1 to go on.
int parse(int count, char** words, Arguments& out) {
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--help" || word == "-h") {
      std::fputs(usage, stdout);
      return 0;
    }
    if (word == "--unshared") {
      out.server.instance.batching.share_prefixes = false;
      out.server.instance.batching.fair = false;
    } else if (known(word) && i + 1 < count) {
      if (!take(word, words[++i], out)) return 2;
    } else {
      std::fprintf(stderr, "loam-engine: unexpected argument '%s'\n%s", words[i], usage);
      return 2;
    }
  }
  if (out.model.path.empty() || out.server.socket_path.empty()) {
    std::fprintf(stderr, "loam-engine: --model and --socket are needed\n%s", usage);
    return 2;
  }
  if (out.server.model_name.empty()) {
    const std::size_t slash = out.model.path.rfind('/');
    out.server.model_name =
        slash == std::string::npos ? out.model.path : out.model.path.substr(slash + 1);
  }
  loam::infer::BatcherConfig& batching = out.server.instance.batching;
  batching.chunk_tokens_least = std::min(batching.chunk_tokens, batching.chunk_tokens_least);
  return -1;
}

int fail(const loam::Error& error) {
  std::fprintf(stderr, "loam-engine: %s\n", loam::to_text(error).c_str());
  return 1;
}

}  // namespace

int main(int count, char** words) {
  Arguments arguments;
  const int status = parse(count, words, arguments);
  if (status >= 0) return status;
  struct sigaction action {};
  action.sa_handler = stop;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  auto model = Model::load(arguments.model);
  if (!model.ok()) {
    fail(model.error());
    return 3;
  }
  auto server = loam::serve::Server::make(**model, arguments.server);
  if (!server.ok()) return fail(server.error());
  std::fprintf(stderr, "loam-engine: serves %s at %s\n", arguments.server.model_name.c_str(),
               arguments.server.socket_path.c_str());
  (*server)->run(stopping);
  std::fprintf(stderr, "loam-engine: %s\n", (*server)->summary().c_str());
  return 0;
}
