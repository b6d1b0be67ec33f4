#include "app/gateway/outbox.hpp"

#include <algorithm>
#include <boost/json/object.hpp>
#include <boost/json/parse.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>

#include "app/gateway/usage_fields.hpp"

namespace loam::serving {
namespace {

namespace json = boost::json;

struct Line {
  api::TokenUseEntry use;
  Instant from;
  Instant to;
};

std::optional<Line> line_of(std::string_view text) {
  boost::system::error_code fault;
  const json::value value = json::parse(text, fault);
  if (fault || !value.is_object()) return std::nullopt;
  const json::object& object = value.get_object();
  Line line;
  line.use.tenant = text_of(object, "tenant");
  line.use.owner = text_of(object, "owner");
  line.use.model = text_of(object, "model");
  for (const auto& [name, field] : {std::pair{"project", &line.use.project},
                                    {"environment", &line.use.environment},
                                    {"owner_project", &line.use.owner_project},
                                    {"owner_environment", &line.use.owner_environment}}) {
    if (std::string text = text_of(object, name); !text.empty()) *field = std::move(text);
  }
  const auto tags = tags_of(object, "tags");
  const auto owner_tags = tags_of(object, "owner_tags");
  const auto arrived = parse_instant(text_of(object, "arrived"));
  const auto lasted = count_of(object, "lasted_ms");
  const auto prompt = count_of(object, "prompt_tokens");
  const auto cached = count_of(object, "cached_tokens");
  const auto generated = count_of(object, "generated_tokens");
  if (line.use.tenant.empty() || line.use.model.empty() || !arrived.ok() || !lasted || !prompt ||
      !cached || !generated || *cached > *prompt || !tags || !owner_tags)
    return std::nullopt;
  line.use.tags = *tags;
  line.use.owner_tags = *owner_tags;
  line.use.requests = 1;
  line.use.prompt_tokens = *prompt;
  line.use.cached_tokens = *cached;
  line.use.generated_tokens = *generated;
  line.from = *arrived;
  line.to = *arrived + Duration{*lasted};
  return line;
}

// What is added up: the caller, the model and its owner, and whose cost and income it is of theirs.
auto whose(const api::TokenUseEntry& use) {
  return std::make_tuple(use.tenant, use.owner, use.project, use.environment, use.model, use.tags,
                         use.owner_project, use.owner_environment, use.owner_tags);
}

void add_to(Line& sum, const Line& line) {
  sum.use.requests += line.use.requests;
  sum.use.prompt_tokens += line.use.prompt_tokens;
  sum.use.cached_tokens += line.use.cached_tokens;
  sum.use.generated_tokens += line.use.generated_tokens;
  sum.from = std::min(sum.from, line.from);
  sum.to = std::max(sum.to, line.to);
}

std::int64_t size_of(const std::string& path) {
  std::error_code fault;
  const auto bytes = std::filesystem::file_size(path, fault);
  return fault ? 0 : static_cast<std::int64_t>(bytes);
}

}  // namespace

UsageBatch read_usage(std::string_view text, std::size_t lines_max) {
  UsageBatch batch;
  std::map<decltype(whose(api::TokenUseEntry{})), Line> sums;
  for (std::size_t lines = 0; lines < lines_max; ++lines) {
    const std::size_t end = text.find('\n', batch.bytes);
    if (end == std::string_view::npos) break;
    const auto line = line_of(text.substr(batch.bytes, end - batch.bytes));
    batch.bytes = end + 1;
    if (!line) {
      ++batch.skipped;
      continue;
    }
    const api::TokenUseEntry& use = line->use;
    if (use.prompt_tokens == 0 && use.generated_tokens == 0) continue;
    const auto [sum, fresh] = sums.try_emplace(whose(use), *line);
    if (!fresh) add_to(sum->second, *line);
  }
  for (auto& [key, line] : sums) {
    line.use.from = to_text(line.from);
    line.use.to = to_text(line.to);
    batch.uses.push_back(std::move(line.use));
  }
  return batch;
}

std::optional<std::string> source_of(const std::string& usage_file) {
  std::ifstream in(usage_file, std::ios::binary);
  std::string line;
  if (!in || !std::getline(in, line) || in.eof()) return std::nullopt;
  std::uint64_t digest = 14'695'981'039'346'656'037U;  // FNV-1a
  for (const char byte : line)
    digest = (digest ^ static_cast<unsigned char>(byte)) * 1'099'511'628'211U;
  constexpr const char* digits = "0123456789abcdef";
  std::string name = "gateway-";
  for (unsigned shift = 64; shift > 0; shift -= 4) name += digits[(digest >> (shift - 4)) & 15U];
  return name;
}

void Outbox::start() {
  thread_ = std::thread([this] { run(); });
}

void Outbox::stop() {
  {
    std::lock_guard lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::int64_t Outbox::waiting_bytes() const {
  std::lock_guard lock(mutex_);
  return waiting_;
}

void Outbox::run() {
  for (bool last = false; !last;) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, std::chrono::milliseconds(config_.bill_every.ms),
                     [&] { return is_stopping_; });
      last = is_stopping_;
    }
    const auto sent = send_all();
    const std::string trouble =
        sent.ok() ? std::string() : "tokens are not on the bill yet: " + to_text(sent.error());
    if (!sent.ok()) client_.reset();
    if (trouble != trouble_ && !trouble.empty()) log_(trouble);
    trouble_ = trouble;
    std::lock_guard lock(mutex_);
    waiting_ = std::max<std::int64_t>(size_of(config_.usage_file) - sent_, 0);
  }
}

Result<void> Outbox::send_all() {
  const auto source = source_of(config_.usage_file);
  if (!source) return {};
  if (!client_) {
    LOAM_TRY(made, api::Client::make({config_.pool, {}, {}}));
    client_.emplace(std::move(made));
    source_.clear();  // another daemon may know more, or less
  }
  if (source_ != *source) {
    LOAM_TRY(known, client_->token_source(*source));
    sent_ = known.sequence;
    source_ = *source;
  }
  if (sent_ > size_of(config_.usage_file)) {
    return Error{ErrorKind::corrupt,
                 config_.usage_file + " is shorter than what is recorded of it: lines were removed",
                 "move it away: a file that replaces it begins anew"};
  }
  for (bool more = true; more;) {
    LOAM_TRY(sent, send_some(*source));
    more = sent;
  }
  return {};
}

// True where there may be more.
Result<bool> Outbox::send_some(const std::string& source) {
  constexpr std::size_t piece_bytes = 1U << 20U;
  constexpr std::size_t lines_max = 1000;  // so no more entries, which is what loamd takes at once
  std::ifstream in(config_.usage_file, std::ios::binary);
  in.seekg(sent_);
  std::string text(piece_bytes, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  const UsageBatch batch = read_usage(text, lines_max);
  if (batch.bytes == 0) return false;
  if (batch.skipped > 0) {
    log_(std::to_string(batch.skipped) + " lines of " + config_.usage_file + " from byte " +
         std::to_string(sent_) + " on cannot be read and are on no bill");
  }
  const std::int64_t end = sent_ + static_cast<std::int64_t>(batch.bytes);
  if (!batch.uses.empty()) {
    LOAM_TRY(recorded, client_->record_tokens({source, end, batch.uses}));
    for (const std::string& why : recorded.refused) log_(why);
  }
  sent_ = end;
  return true;
}

}  // namespace loam::serving
