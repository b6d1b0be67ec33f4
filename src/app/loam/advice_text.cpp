#include "app/loam/advice_text.hpp"

#include <algorithm>
#include <cstdlib>

#include "app/loam/human.hpp"
#include "app/loam/table.hpp"
#include "billing/csv.hpp"

namespace loam::cli {
namespace {

std::string amount(std::int64_t thousandths) {
  return decimal_text(thousandths, 3);
}

std::string money(Money value) {
  return display_text(value, value.currency().exponent());
}

std::string percent(BasisPoints share) {
  return decimal_text(share.value, 2) + " %";
}

std::string words_of(const billing::Advice& advice, const billing::AdviceRequest& request) {
  if (advice.peak == 0) return "Commit to nothing: nothing is used.";
  if (advice.layers.empty()) return "Commit to nothing: no part of the use is busy often enough.";
  std::string text = "Commit to " + amount(advice.commitment);
  if (advice.layers.size() > 1 || request.options.size() > 1) {
    std::string parts;
    for (const billing::CommitLayer& layer : advice.layers)
      parts += (parts.empty() ? "" : ", ") + amount(layer.amount) + " " +
               request.options[layer.option].name;
    text += " (" + parts + ")";
  }
  return text + " and run the rest on demand.";
}

}  // namespace

std::string advice_text(const billing::Advice& advice, const billing::AdviceRequest& request,
                        const HiddenCosts& hidden, bool colour, std::size_t width) {
  const std::string code(request.on_demand.currency().code());
  std::string text = styled(printable(words_of(advice, request)), Style::bold, colour) + "\n\n";
  std::string besides;
  for (const auto& [words, price] : hidden)
    besides += (besides.empty() ? "" : ", ") + money(price) + " " + words;
  text += facts_text(
      {{"use", "over " + human_duration(advice.length.ms) + ": base " + amount(advice.base) +
                   ", average " + amount(advice.average) + ", valley " + amount(advice.valley) +
                   ", peak " + amount(advice.peak)},
       {"breaks even", advice.break_even
                           ? "where busy " + percent(*advice.break_even) + " of the time or more"
                           : std::string("never: the commitment is dearer")},
       {"hidden costs", besides}},
      colour);
  Table table({{"ACCOUNT"},
               {"COMMITTED", Align::right},
               {"COST " + code, Align::right},
               {"AGAINST ON DEMAND", Align::right}});
  const auto add = [&](const char* name, std::int64_t committed, Money cost, Style style) {
    const Money less = advice.cost_on_demand - cost;
    table.add({Cell(name, style), amount(committed), Cell(money(cost), style),
               less.is_zero()
                   ? ""
                   : (less.is_negative() ? "+" : "-") + money(less.is_negative() ? -less : less)});
  };
  add("all on demand", 0, advice.cost_on_demand, Style::plain);
  add("all committed", advice.peak, advice.cost_committed, Style::plain);
  add("mixed", advice.commitment, advice.cost_mixed, Style::good);
  if (advice.cost_with_spot) {
    const std::string name = "mixed, " + percent(*advice.spot_share) + " of the rest on spot";
    add(name.c_str(), advice.commitment_with_spot, *advice.cost_with_spot, Style::plain);
  }
  return text + "\n" + table.text(colour, width);
}

std::string advice_json(const billing::Advice& advice, const billing::AdviceRequest& request,
                        const HiddenCosts& hidden) {
  std::string text = "{\"commitment\":" + amount(advice.commitment) +
                     ",\"cost_mixed\":" + money(advice.cost_mixed) +
                     ",\"cost_on_demand\":" + money(advice.cost_on_demand) +
                     ",\"cost_committed\":" + money(advice.cost_committed) + ",\"break_even\":" +
                     (advice.break_even ? decimal_text(advice.break_even->value, 4) : "null") +
                     ",\"currency\":" + billing::json_string(request.on_demand.currency().code()) +
                     ",\"base\":" + amount(advice.base) + ",\"average\":" + amount(advice.average) +
                     ",\"valley\":" + amount(advice.valley) + ",\"peak\":" + amount(advice.peak) +
                     ",\"hours\":" + decimal_text(advice.length.ms / 3600, 3) + ",\"layers\":[";
  for (std::size_t i = 0; i < advice.layers.size(); ++i) {
    text += (i == 0 ? "" : ",") + std::string("{\"option\":") +
            billing::json_string(request.options[advice.layers[i].option].name) +
            ",\"amount\":" + amount(advice.layers[i].amount) + "}";
  }
  text += "]";
  if (advice.cost_with_spot)
    text += ",\"cost_with_spot\":" + money(*advice.cost_with_spot) +
            ",\"spot_share\":" + decimal_text(advice.spot_share->value, 4) +
            ",\"commitment_with_spot\":" + amount(advice.commitment_with_spot);
  if (!hidden.empty()) {
    text += ",\"hidden\":{";
    for (const auto& [words, price] : hidden)
      text += (&words == &hidden.front().first ? "" : ",") + billing::json_string(words) + ":" +
              amount_text(price);
    text += "}";
  }
  return text + "}";
}

// --- The picture
// -----------------------------------------------------------------------------------

namespace {

constexpr std::int64_t picture_width = 960, picture_height = 360;
constexpr std::int64_t left = 60, right = 940, top = 40, bottom = 310;
constexpr std::size_t points_max = 2000;  // more than pixels across

struct Scale {
  Instant from;
  Int128 length = 1;
  Int128 peak = 1;

  std::string x(Instant at) const {
    return std::to_string(
        left + static_cast<std::int64_t>((right - left) * Int128{(at - from).ms} / length));
  }
  std::string y(std::int64_t value) const {
    return std::to_string(
        bottom - static_cast<std::int64_t>((bottom - top) * std::min(Int128{value}, peak) / peak));
  }
};

// Steps of several rows in one where there are more than the picture has room for: their mean.
std::vector<billing::UsageStep> thinned(const std::vector<billing::UsageStep>& usage) {
  const std::size_t each = (usage.size() + points_max - 1) / points_max;
  if (each <= 1) return usage;
  std::vector<billing::UsageStep> fewer;
  for (std::size_t i = 0; i < usage.size(); i += each) {
    Int128 area = 0, length = 0;
    for (std::size_t j = i; j < std::min(usage.size(), i + each); ++j) {
      area += static_cast<Int128>(usage[j].amount) * usage[j].length.ms;
      length += usage[j].length.ms;
    }
    fewer.push_back({usage[i].from, Duration{static_cast<std::int64_t>(length)},
                     static_cast<std::int64_t>(area / length)});
  }
  return fewer;
}

// The area between zero and the curve, cut off at `at_most`.
std::string area(const std::vector<billing::UsageStep>& usage, const Scale& scale,
                 std::int64_t at_most, const char* fill) {
  std::string path = "M" + scale.x(usage.front().from) + "," + scale.y(0);
  for (const billing::UsageStep& step : usage) {
    const std::string y = scale.y(std::min(step.amount, at_most));
    path += " L" + scale.x(step.from) + "," + y + " L" + scale.x(step.from + step.length) + "," + y;
  }
  path += " L" + scale.x(usage.back().from + usage.back().length) + "," + scale.y(0) + " Z";
  return "<path d=\"" + path + "\" fill=\"" + fill + "\"/>\n";
}

std::string label(std::int64_t x, std::int64_t y, const std::string& text, const char* anchor) {
  return "<text x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(y) + "\" text-anchor=\"" +
         anchor + "\">" + text + "</text>\n";
}

constexpr std::int64_t ticks = 4;

// Files may count hours from none: then no date is shown.
std::string time_text(Instant at) {
  constexpr std::int64_t hour_ms = 3'600'000, first_year_ms = hour_ms * 24 * 366;
  if (at.ms < first_year_ms) return "hour " + std::to_string(at.ms / hour_ms);
  return instant_text(to_text(at)) + " UTC";
}

// A box of a colour, and what it means.
std::string key(std::int64_t x, const char* fill, const std::string& text) {
  return "<rect x=\"" + std::to_string(x) + "\" y=\"" + std::to_string(top - 26) +
         "\" width=\"12\" height=\"12\" fill=\"" + fill + "\"/>\n" +
         label(x + 18, top - 16, text, "start");
}

}  // namespace

std::string advice_svg(const std::vector<billing::UsageStep>& usage,
                       const billing::Advice& advice) {
  const std::vector<billing::UsageStep> curve = thinned(usage);
  const Scale scale{usage.front().from, advice.length.ms,
                    std::max<std::int64_t>({advice.peak, advice.commitment, 1})};
  const std::string line_y = scale.y(advice.commitment);
  std::string svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " +
                    std::to_string(picture_width) + " " + std::to_string(picture_height) +
                    "\" font-family=\"sans-serif\" font-size=\"12\">\n"
                    "<title>Use, commitment and what stays on demand</title>\n"
                    "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  svg += area(curve, scale, advice.peak, "#e8a33d");
  svg += area(curve, scale, advice.commitment, "#3d7ea6");
  svg += "<line x1=\"" + std::to_string(left) + "\" x2=\"" + std::to_string(right) + "\" y1=\"" +
         line_y + "\" y2=\"" + line_y + "\" stroke=\"#12324a\" stroke-dasharray=\"6 4\"/>\n";
  svg += "<line x1=\"" + std::to_string(left) + "\" x2=\"" + std::to_string(right) + "\" y1=\"" +
         std::to_string(bottom) + "\" y2=\"" + std::to_string(bottom) + "\" stroke=\"#333333\"/>\n";
  // What the axis says: whole ticks, and the commitment's own.
  for (std::int64_t i = 0; i <= ticks; ++i) {
    const std::int64_t value = static_cast<std::int64_t>(scale.peak) * i / ticks;
    const std::int64_t y = std::stoll(scale.y(value));
    constexpr std::int64_t room = 14;  // a line of text
    if (std::abs(y - std::stoll(line_y)) < room) continue;
    svg += label(left - 8, y + 4, amount(value), "end");
    svg += "<line x1=\"" + std::to_string(left - 4) + "\" x2=\"" + std::to_string(left) +
           "\" y1=\"" + std::to_string(y) + "\" y2=\"" + std::to_string(y) +
           "\" stroke=\"#333333\"/>\n";
  }
  svg += label(left - 8, std::stoll(line_y) + 4, amount(advice.commitment), "end");
  svg += label(left, bottom + 20, time_text(usage.front().from), "start");
  svg += label(right, bottom + 20, time_text(usage.back().from + usage.back().length), "end");
  svg += key(left, "#3d7ea6", "committed (blue) " + amount(advice.commitment));
  svg += key(left + 240, "#e8a33d", "on demand (orange), peak " + amount(advice.peak));
  svg += label(right, top - 16,
               advice.break_even ? "pays where busy " + percent(*advice.break_even) + " of the time"
                                 : std::string("never pays"),
               "end");
  return svg + "</svg>\n";
}

}  // namespace loam::cli
