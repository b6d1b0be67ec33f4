// trial: a task run briefly on several sizes, to measure what a guess would get wrong.
#include <algorithm>

#include "app/loam/commands.hpp"
#include "app/loam/human.hpp"
#include "app/loam/request.hpp"
#include "app/loam/session.hpp"
#include "base/money.hpp"
#include "base/quantity.hpp"
#include "billing/csv.hpp"

namespace loam::cli {
namespace {

constexpr std::size_t sizes_max = 20;

struct Trial {
  std::string size;  // CE asked
  api::TaskView task;
  Money cost;

  bool good() const { return task.outcome == "succeeded"; }
};

Result<std::vector<std::string>> sizes_of(const Arguments& arguments) {
  std::vector<std::string> sizes;
  const std::string given = arguments.text("sizes");
  std::string_view rest = given;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(','), rest.size());
    const auto size = parse_ce(rest.substr(0, end));
    if (!size) return invalid("--sizes: " + size.error().message, size.error().next_step);
    const std::string text = to_text(*size);
    if (std::find(sizes.begin(), sizes.end(), text) != sizes.end())
      return invalid("--sizes: " + text + " is given twice", "give each size once");
    sizes.push_back(text);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  if (sizes.empty()) return invalid("there are no sizes to try", "give them: --sizes 10,20,40");
  if (sizes.size() > sizes_max)
    return invalid(std::to_string(sizes.size()) + " sizes are too many", "the most is 20");
  return sizes;
}

// One size: submitted, watched to its end, and what it cost.
Result<Trial> try_size(Session& session, Arguments arguments, const std::string& size) {
  arguments.options["ce"] = {size};
  LOAM_TRY(request, request_of(session, arguments));
  if (request.command.empty())
    return invalid("there is no program to try", "name it after --, such as: -- ./train");
  request.tags.try_emplace("trial", size);
  LOAM_TRY(client, session.client());
  LOAM_TRY(submitted, client->submit(request));
  session.say(submitted.id + " on " + size + " CE");
  LOAM_TRY(ended, client->watch(submitted.id, {}, {}));
  LOAM_TRY(currency, Currency::parse(ended.currency));
  LOAM_TRY(cost, Money::parse(ended.cost, currency));
  return Trial{size, std::move(ended), cost};
}

Money per_unit(const Trial& trial, std::int64_t thousandths) {
  return trial.cost.times_ratio(1000, thousandths, Rounding::half_even);
}

std::string seconds_per_unit(const Trial& trial, std::int64_t thousandths) {
  // ms × 1000 / thousandths is ms a unit; shown in seconds.
  return decimal_text(trial.task.run_ms * 1000 / thousandths, 3);
}

// The good trial that is least by `less`; nullptr where all failed.
template <class Less>
const Trial* best(const std::vector<Trial>& trials, const Less& less) {
  const Trial* found = nullptr;
  for (const Trial& trial : trials) {
    if (trial.good() && (found == nullptr || less(trial, *found))) found = &trial;
  }
  return found;
}
const Trial* cheapest(const std::vector<Trial>& trials) {
  return best(trials, [](const Trial& a, const Trial& b) { return a.cost < b.cost; });
}
const Trial* fastest(const std::vector<Trial>& trials) {
  return best(trials, [](const Trial& a, const Trial& b) { return a.task.run_ms < b.task.run_ms; });
}

// Measurements this near one another are the same: what one of them has more is noise.
constexpr std::int64_t near_percent = 5;

bool as_cheap(const Trial& trial, const Trial* least) {
  return least != nullptr && trial.good() &&
         trial.cost <= least->cost.times_ratio(100 + near_percent, 100, Rounding::half_even);
}
bool as_fast(const Trial& trial, const Trial* least) {
  return least != nullptr && trial.good() &&
         trial.task.run_ms * 100 <= least->task.run_ms * (100 + near_percent);
}

// "cheapest", or "cheapest, alike" of several that are near one another; nothing where all are.
std::string rank_of(const std::vector<Trial>& trials, const Trial& trial) {
  const auto word = [&](const char* name, const Trial* least, auto near) -> std::string {
    const auto alike = std::count_if(trials.begin(), trials.end(),
                                     [&](const Trial& each) { return near(each, least); });
    const auto good =
        std::count_if(trials.begin(), trials.end(), [](const Trial& each) { return each.good(); });
    if (!near(trial, least) || (alike == good && good > 1)) return "";
    return alike > 1 ? std::string(name) + " alike" : name;
  };
  std::string words = word("cheapest", cheapest(trials), as_cheap);
  const std::string fast = word("fastest", fastest(trials), as_fast);
  return words.empty() || fast.empty() ? words + fast : words + ", " + fast;
}

// What the figures do not say by themselves.
void say_notes(Session& session, const std::vector<Trial>& trials) {
  if (trials.size() < 2) return;
  const auto all = [&](auto near, const Trial* least) {
    return std::all_of(trials.begin(), trials.end(),
                       [&](const Trial& trial) { return near(trial, least); });
  };
  const std::string within = " within " + std::to_string(near_percent) + " %: ";
  if (all(as_fast, fastest(trials)))
    session.say("note: all sizes take as long" + within + "the task does not use more");
  if (all(as_cheap, cheapest(trials)))
    session.say("note: all sizes cost as much" + within + "none is the cheapest");
  const bool one_price = std::all_of(trials.begin(), trials.end(), [&](const Trial& trial) {
    return trial.task.billable_ce == trials.front().task.billable_ce;
  });
  if (one_price)
    session.say("note: the memory decides the price: every size is billed " +
                trials.front().task.billable_ce + " CE; --memory asks for less of it");
}

void print_table(Session& session, const std::vector<Trial>& trials, std::int64_t units) {
  Table table({{"CE", Align::right},
               {"TASK"},
               {"ENDED"},
               {"TIME", Align::right},
               {"COST", Align::right},
               {"SECONDS A UNIT", Align::right},
               {"COST A UNIT", Align::right},
               {""}});
  std::vector<std::string> costs, each;
  for (const Trial& trial : trials) {
    costs.push_back(amount_text(trial.cost));
    each.push_back(amount_text(per_unit(trial, units)));
  }
  const std::string code = trials.front().task.currency;
  const auto cost_column = money_column(costs, code), each_column = money_column(each, code);
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const Trial& trial = trials[i];
    const std::string words = rank_of(trials, trial);
    table.add({trial.size, trial.task.id, trial.task.outcome, exact_seconds(trial.task.run_ms),
               cost_column[i], trial.good() ? seconds_per_unit(trial, units) : "",
               trial.good() ? each_column[i] : "", Cell(words, Style::good)});
  }
  session.out() << session.text_of(table);
}

void print_json(Session& session, const std::vector<Trial>& trials, std::int64_t units) {
  session.out() << "{\"trials\":[";
  for (std::size_t i = 0; i < trials.size(); ++i) {
    const Trial& trial = trials[i];
    session.out() << (i == 0 ? "" : ",") << "{\"ce\":" << billing::json_string(trial.size)
                  << ",\"task\":" << billing::json_string(trial.task.id)
                  << ",\"outcome\":" << billing::json_string(trial.task.outcome)
                  << ",\"run_ms\":" << trial.task.run_ms
                  << ",\"cost\":" << billing::json_string(amount_text(trial.cost))
                  << ",\"cost_per_unit\":"
                  << (trial.good() ? billing::json_string(amount_text(per_unit(trial, units)))
                                   : "null")
                  << "}";
  }
  const auto size = [](const Trial* trial) {
    return trial == nullptr ? std::string("null") : billing::json_string(trial->size);
  };
  session.out() << "],\"cheapest\":" << size(cheapest(trials))
                << ",\"fastest\":" << size(fastest(trials)) << "}\n";
}

Result<int> run_trial(Session& session, const Arguments& arguments) {
  LOAM_TRY(sizes, sizes_of(arguments));
  constexpr std::int64_t units_max = 1'000'000'000'000;
  LOAM_TRY(units, parse_decimal(arguments.text("units", "1"), 3, units_max, "number of units"));
  if (units == 0) return invalid("--units: 0 units are no output", "leave it out for one a run");
  std::vector<Trial> trials;
  for (const std::string& size : sizes) {
    LOAM_TRY(trial, try_size(session, arguments, size));
    trials.push_back(std::move(trial));
  }
  if (session.json()) {
    print_json(session, trials, units);
  } else {
    print_table(session, trials, units);
    say_notes(session, trials);
  }
  const bool all_good =
      std::all_of(trials.begin(), trials.end(), [](const Trial& trial) { return trial.good(); });
  return all_good ? 0 : 1;
}

}  // namespace

std::vector<Command> trial_commands() {
  auto groups = request_options();
  groups.insert(groups.begin(),
                OptionGroup{"Trial",
                            {{"--sizes", "CE,CE…", "the sizes to try, one after another"},
                             {"--units", "N", "what one run of the program makes; default: 1"}}});
  return {
      {"trial",
       "Run a task briefly on several sizes and compare time and cost",
       "One size after another, so that they do not disturb one another; every run is billed\n"
       "as any task. Give the program little work, or a --time. Exit status 1 where a run fails.",
       "loam trial --sizes 10,20,40 --units 500 --time 2m -- ./train --steps 500",
       {{"CMD…", "the program and its arguments, after --", Operand::Kind::program}},
       groups,
       run_trial,
       true}};
}

}  // namespace loam::cli
