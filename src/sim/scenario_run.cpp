#include "sim/scenario_run.hpp"

#include <algorithm>
#include <boost/describe/enum_to_string.hpp>

#include "engine/queries.hpp"
#include "sim/audited_world.hpp"
#include "sim/scenario_words.hpp"
#include "sim/story.hpp"

namespace loam::sim {
namespace {

constexpr std::uint64_t seed = 1;  // reports travel at once: no dice

// "behind(t7)" as the scenario calls it: "behind(j1)".
std::string word_for(const engine::WaitReason& reason, const Story& story) {
  if (!reason.other.valid()) return reason.code;
  return reason.code.substr(0, reason.code.find('(')) + "(" + story.name_of(reason.other) + ")";
}

class Runner {
 public:
  Runner(const Scenario& scenario, bool update)
      : scenario_(scenario),
        update_(update),
        start_(start_of(scenario)),
        world_(start_, seed),
        story_(start_) {
    world_.on_record(
        [this](const Record& record) { story_.hear(record, world_.clock().true_now()); });
  }

  Result<ScenarioResult> run() {
    for (const Statement& statement : scenario_.statements) {
      statement_ = &statement;
      if (statement.at) LOAM_CHECK(move_to(*statement.at));
      LOAM_CHECK(std::visit([&](const auto& step) { return on(step); }, statement.step));
      world_.advance_to(world_.clock().true_now());
      LOAM_CHECK(audit());
    }
    LOAM_CHECK(close_group());
    world_.check_notices();
    world_.check_replay();
    LOAM_CHECK(audit());
    return std::move(result_);
  }

 private:
  Error fault(std::string message, std::string next_step = {}) const {
    const std::size_t column =
        statement_->line.words.empty() ? 1 : statement_->line.words.front().column;
    return fault_at(scenario_.file, statement_->line, column, std::move(message),
                    std::move(next_step));
  }
  Instant now() { return world_.clock().true_now(); }

  Result<void> audit() {
    world_.audit();
    if (world_.broken().empty()) return {};
    return fault("the books do not agree after this: " + world_.broken(),
                 "this is a fault of loam: please report it with this file");
  }

  Result<void> move_to(const At& at) {
    Instant target = at.instant;
    if (at.kind == At::Kind::after_start) target = start_ + at.after;
    if (at.kind == At::Kind::after_last) target = now() + at.after;
    if (target < now()) {
      return fault("this is at " + to_text(target) + ", and it is " + to_text(now()) + " already",
                   "put the statements in order of time");
    }
    LOAM_CHECK(close_group());
    first_ = story_.happenings().size();
    world_.advance_to(target);
    return {};
  }

  // Asks; repeats with the same key when the daemon died before it answered.
  engine::Answer ask(const std::string& who, Command command, std::string key = {}) {
    if (key.empty()) key = "line-" + std::to_string(statement_->line.number);
    std::string asked;
    for (const Word& word : statement_->line.words) {
      if (word.text != "at" || &word != &statement_->line.words.front())
        asked += word.written() + " ";
    }
    // The time is not part of what is asked.
    if (statement_->at) asked.erase(0, asked.find(' ') + 1);
    const RequestKey request{"scenario", std::move(key), std::move(asked)};
    const std::size_t restarts = world_.restarts();
    engine::Answer answer = world_.ask(command, request);
    if (answer.error && world_.restarts() != restarts) answer = world_.ask(command, request);
    if (answer.reject) {
      story_.add(now(),
                 {plain("reject"), plain(who),
                  plain(boost::describe::enum_to_string(answer.reject->code, "?")),
                  attribute("message", answer.reject->message)},
                 false);
    } else if (answer.error) {
      story_.add(now(), {plain("error"), plain(who), plain(name_of(answer.error->kind))}, false);
    }
    return answer;
  }

  Result<TenantId> tenant(const std::string& name) const {
    const TenantId id = story_.tenant_named(name);
    if (!id.valid()) return fault("there is no tenant '" + name + "'", "add: tenant " + name);
    return id;
  }
  Result<TaskId> task(const std::string& name) const {
    const TaskId id = story_.task_named(name);
    if (!id.valid()) return fault("no task '" + name + "' was accepted", "submit it first");
    return id;
  }
  Result<const engine::State*> state() const {
    if (!world_.up()) return fault("the daemon is down", "start it first: fault daemon up");
    return &world_.state();
  }

  Result<void> on(const std::monostate&) { return {}; }
  Result<void> on(const SetClock&) { return {}; }
  Result<void> on(const DefineDevice& step) {
    types_[step.facts.type] = step.facts;
    return {};
  }

  Result<void> on(const AddNode& step) {
    ask(step.node.name, step.node);
    std::int64_t index = 0;
    for (const std::string& type : step.device_types) {
      const auto found = types_.find(type);
      if (found == types_.end()) {
        return fault("there is no device type '" + type + "'",
                     "define it above: device " + type + " ce=100 memory=80GiB");
      }
      DeviceFacts facts = found->second;
      facts.uuid = "gpu-" + step.node.name + "-" + std::to_string(index);
      if (step.links > 0) facts.link_group = "links-" + std::to_string(index / step.links);
      ask(step.node.name, AttachDevice{step.node.name, facts}, facts.uuid);
      ++index;
    }
    return {};
  }

  Result<void> on(const SetRate& step) {
    if (step.model != PurchaseModel::on_demand) {
      story_.add(now(), {plain("reject"), plain("rate"), plain("unsupported_field")}, false);
      return {};
    }
    RateCard card;
    card.currency = Currency(step.currency);
    const auto price = Money::parse(step.amount, card.currency);
    if (!price) return fault(price.error().message, price.error().next_step);
    card.on_demand = *price;
    card.ce_per_gibibyte = step.ce_per_gibibyte;
    card.terms = step.terms;
    card.effective_from = step.from ? *step.from : world_.clock().now();
    if (step.from_after) card.effective_from = world_.clock().now() + *step.from_after;
    ask("rate", PublishRateCard{card});
    return {};
  }

  Result<void> on(const MakeBudget& step) {
    LOAM_TRY(id, tenant(step.tenant));
    Budget budget = step.budget;
    budget.scope.tenant = id;
    ask(budget.name, SetBudget{budget});
    return {};
  }

  Result<void> on(const AnswerBudgetStep& step) {
    AnswerBudget answer{step.budget, step.up_to.has_value(), {}};
    answer.approval.by = "somebody";
    if (step.up_to) answer.approval.new_limit = *step.up_to;
    answer.approval.until = world_.clock().now() + step.lasts;
    ask(step.budget, std::move(answer));
    return {};
  }

  Result<void> on(const CreditStep& step) {
    LOAM_TRY(id, tenant(step.tenant));
    ask(step.tenant, CreditInvoice{story_.last_invoice(id), step.amount, "scenario"});
    return {};
  }

  Result<void> on(const CommitStep& step) {
    LOAM_TRY(id, tenant(step.tenant));
    ask(step.tenant, order_of(step, id));
    return {};
  }

  Result<void> on(const ReserveStep& step) {
    LOAM_TRY(id, tenant(step.tenant));
    ask(step.tenant, order_of(step, id, start_, world_.clock().now()));
    return {};
  }

  Result<void> on(const ShortfallStep& step) {
    LOAM_TRY(id, task(step.task));
    const Story::LastLease last = story_.last_lease(id);
    if (!last.lease.valid()) return fault("'" + step.task + "' never had a lease to report on");
    ask(step.task, report_of(step, last.lease, last.epoch, world_.clock().now()));
    return {};
  }

  Result<void> on(const MakeTenant& step) {
    if (step.change) {
      LOAM_TRY(id, tenant(step.spec.name));
      ask(step.spec.name, ChangeTenant{id, step.spec});
      return {};
    }
    if (!ask(step.spec.name, CreateTenant{step.spec}).ok()) return {};
    if (!step.wallet || step.wallet->is_zero()) return {};
    ask(step.spec.name, TopUp{story_.tenant_named(step.spec.name), *step.wallet, "scenario"},
        step.spec.name + "-wallet");
    return {};
  }

  template <class Change>
  Result<void> settle(const std::string& name, const Change& change) {
    LOAM_TRY(state, this->state());
    SchedulingSettings settings = state->settings;
    change(settings);
    ask(name, SetScheduling{settings});
    return {};
  }
  template <class T, class Same>
  static void put(std::vector<T>& all, const T& one, const Same& same) {
    const auto known = std::find_if(all.begin(), all.end(), same);
    if (known == all.end()) {
      all.push_back(one);
    } else {
      *known = one;
    }
  }
  Result<void> on(const SetQueue& step) {
    return settle(step.queue.name, [&](SchedulingSettings& settings) {
      put(settings.queues, step.queue,
          [&](const QueueSettings& queue) { return queue.name == step.queue.name; });
    });
  }
  Result<void> on(const SetClass& step) {
    return settle(step.service_class.name, [&](SchedulingSettings& settings) {
      put(settings.classes, step.service_class,
          [&](const ServiceClass& known) { return known.name == step.service_class.name; });
    });
  }
  Result<void> on(const SetWeight& step) {
    return settle(step.weight.tenant, [&](SchedulingSettings& settings) {
      put(settings.weights, step.weight, [&](const ShareWeight& known) {
        return known.tenant == step.weight.tenant && known.project == step.weight.project;
      });
    });
  }

  Result<void> on(const SetPlacement& step) {
    return settle(step.policy,
                  [&](SchedulingSettings& settings) { settings.placement = step.policy; });
  }

  Result<void> on(const SetHoldExpires& step) {
    return settle("hold_expires",
                  [&](SchedulingSettings& settings) { settings.hold_expires = step.after; });
  }

  Result<void> on(const SetDefrag& step) {
    return settle("defrag", [&](SchedulingSettings& settings) { settings.defrag = step.defrag; });
  }

  Result<void> on(const SetOversubscription& step) {
    return settle("oversubscribe",
                  [&](SchedulingSettings& settings) { settings.oversubscription = step.lent; });
  }

  Result<void> on(const Submit& step) {
    LOAM_TRY(id, tenant(step.tenant));
    if (!step.quote_only) {
      ask(step.spec.name, SubmitTask{id, step.spec}, step.key);
      return {};
    }
    LOAM_TRY(state, this->state());
    const engine::QuoteAnswer answer = engine::quote(*state, world_.clock().now(), id, step.spec);
    story_.quoted(now(), step.tenant, answer);
    return {};
  }

  Result<void> on(const AskOfTask& step) {
    LOAM_TRY(id, task(step.task));
    if (step.verb == TaskVerb::stop) ask(step.task, StopTask{id});
    if (step.verb == TaskVerb::pause) ask(step.task, PauseTask{id});
    if (step.verb == TaskVerb::resume) ask(step.task, ResumeTask{id, step.purchase});
    return {};
  }

  Result<DeviceId> device(const std::string& name) const {
    LOAM_TRY(state, this->state());
    const Device* device = state->find_device(name);
    if (device == nullptr) {
      return fault("there is no device '" + name + "'", "devices are named node/index: n1/0");
    }
    return device->id;
  }

  Result<void> on(const Drain& step) {
    LOAM_TRY(id, device(step.device));
    ask(step.device, DrainDevice{id, step.draining});
    return {};
  }
  Result<void> on(const Pay& step) {
    LOAM_TRY(id, tenant(step.tenant));
    ask(step.tenant, step.out ? Command(PayOut{id, step.amount, "scenario"})
                              : Command(TopUp{id, step.amount, "scenario"}));
    return {};
  }
  Result<void> on(const Reverse& step) {
    LOAM_TRY(id, tenant(step.tenant));
    ask(step.tenant,
        ReverseTransaction{step.transaction.value_or(story_.last_payment(id)), "scenario"});
    return {};
  }
  Result<void> on(const CancelStep& step) {
    ask(step.reservation.valid() ? step.reservation.text() : step.commitment.text(),
        order_of(step));
    return {};
  }
  Result<void> on(const InvoiceNow& step) {
    LOAM_TRY(id, tenant(step.tenant));
    LOAM_TRY(state, this->state());
    ask(step.tenant, order_of(step, id, *state));
    return {};
  }

  Result<void> on(const Report& step) {
    LOAM_TRY(id, task(step.task));
    const Story::LastLease last = story_.last_lease(id);
    if (!last.lease.valid()) return fault("'" + step.task + "' never had a lease to report on");
    ask(step.task, report_of(step, last.lease, last.epoch, world_.clock().now()));
    return {};
  }

  Result<void> on(const FaultDaemon& step) {
    if (step.fault == DaemonFault::killed_before_effects) {
      world_.die_before_effects();
      return {};
    }
    const bool down = step.fault == DaemonFault::down || step.fault == DaemonFault::killed;
    const bool up = step.fault == DaemonFault::up || step.fault == DaemonFault::killed;
    if (down && !world_.up()) return fault("the daemon is down already");
    if (!down && world_.up()) return fault("the daemon is up already");
    if (down) world_.kill();
    if (up) world_.start();
    return {};
  }
  Result<void> on(const FaultJournal& step) {
    if (step.torn_at) {
      world_.journal().tear_next(*step.torn_at);
    } else {
      world_.journal().set_full(step.full);
    }
    return {};
  }
  Result<void> on(const FaultClock& step) {
    world_.clock().step(step.step);
    return {};
  }
  Result<void> on(const FaultDevice& step) {
    LOAM_TRY(state, this->state());
    std::vector<DeviceId> devices;
    const auto node = state->node_by_name.find(step.name);
    if (node != state->node_by_name.end()) {
      devices = state->node(node->second).devices;
    } else {
      LOAM_TRY(id, device(step.name));
      devices.push_back(id);
    }
    for (const DeviceId id : devices) {
      world_.report_health(id, step.health, world_.clock().now() - step.unseen,
                           "said by the scenario");
    }
    return {};
  }
  Result<void> on(const TakeSnapshot&) {
    LOAM_TRY(state, this->state());
    world_.journal().keep_snapshot(*state);
    return {};
  }

  // What an expectation asks of the present rather than of what was decided.
  Result<bool> ask_present(const std::vector<Word>& words, std::vector<Word>& actual) {
    const bool wait = words[0].text == "wait";
    if ((!wait && words[0].text != "state") || words.size() < 2) return false;
    LOAM_TRY(id, task(words[1].text));
    LOAM_TRY(state, this->state());
    const Task* task = state->find_task(id);
    actual = {words[0], words[1]};
    if (wait && task != nullptr && task->state == TaskState::waiting) {
      const engine::WaitReason reason = engine::why_waits(*state, *task);
      actual.push_back(plain(word_for(reason, story_)));
      actual.push_back(attribute("words", reason.words));
    } else {
      const TaskState is = task == nullptr ? TaskState::finished : task->state;
      actual[0] = plain("state");
      actual.push_back(plain(boost::describe::enum_to_string(is, "?")));
    }
    return true;
  }

  Result<void> on(const Expect& step) {
    ++result_.expectations;
    world_.advance_to(now());
    const std::vector<Word> words = canonical(step.words);
    std::vector<Word> actual;
    LOAM_TRY(present, ask_present(words, actual));
    if (present) {
      if (agrees(words, actual)) return {};
      if (!update_) return disappointed(words, written(actual, words));
      result_.edits[statement_->line.number] = {"expect " + written(actual, words)};
      return {};
    }
    group_.push_back({statement_->line.number, words, false});
    auto& all = story_.happenings();
    for (std::size_t i = first_; i < all.size(); ++i) {
      if (all[i].matched || all[i].at != now() || !agrees(words, all[i].words)) continue;
      all[i].matched = true;
      group_.back().met = true;
      return {};
    }
    if (update_) return {};
    return disappointed(words, what_happened(words));
  }

  Error disappointed(const std::vector<Word>& words, const std::string& instead) const {
    return fault("expected '" + written(words, words) + "', but " +
                     (instead.empty() ? "nothing was decided" : "there was: " + instead),
                 "if that is right, take it over with: loam scenario --update " + scenario_.file);
  }

  std::string what_happened(const std::vector<Word>& like) {
    std::string text;
    auto& all = story_.happenings();
    for (std::size_t i = first_; i < all.size(); ++i) {
      if (all[i].at != now() || all[i].matched) continue;
      text += (text.empty() ? "" : "; ") + written(all[i].words, like);
    }
    return text;
  }

  // Plain words, and those attributes that `like` names.
  static std::string written(const std::vector<Word>& words, const std::vector<Word>& like) {
    Line line;
    for (const Word& word : words) {
      const bool wanted = word.key.empty() || std::any_of(like.begin(), like.end(), [&](auto& w) {
                            return w.key == word.key;
                          });
      if (wanted) line.words.push_back(word);
    }
    return line.written();
  }

  Result<void> on(const Quiet&) {
    ++result_.expectations;
    world_.advance_to(now());
    quiet_line_ = statement_->line.number;
    if (update_) return {};
    auto& all = story_.happenings();
    for (std::size_t i = first_; i < all.size(); ++i) {
      if (all[i].at == now() && !all[i].matched && !all[i].aside) {
        return fault(
            "it was not quiet: " + written(all[i].words, {}),
            "expect that too, or take it over with: loam scenario --update " + scenario_.file);
      }
    }
    return {};
  }

  // With --update: when something expected since the last `at` did not happen, or it was not
  // quiet, what did happen takes the place of all those lines.
  Result<void> close_group() {
    auto& all = story_.happenings();
    const bool all_met = std::all_of(group_.begin(), group_.end(), [](auto& e) { return e.met; });
    bool quiet = true;
    std::vector<std::string> lines;
    for (std::size_t i = first_; i < all.size(); ++i) {
      Happening& happened = all[i];
      if (happened.at != now() || (happened.aside && !happened.matched)) continue;
      quiet = quiet && happened.matched;
      std::vector<Word> like;
      for (const Expectation& old : group_) {
        if (old.words.size() > 1 && old.words[0].text == happened.words[0].text &&
            old.words[1].text == happened.words[1].text) {
          like = old.words;
        }
      }
      lines.push_back("expect " + written(happened.words, like));
    }
    const bool redo = update_ && (!all_met || (quiet_line_ != 0 && !quiet));
    if (redo) {
      for (const Expectation& old : group_) result_.edits[old.line] = {};
      const std::size_t place = group_.empty() ? quiet_line_ : group_.front().line;
      if (group_.empty()) lines.push_back("quiet");
      result_.edits[place] = lines;
    }
    group_.clear();
    quiet_line_ = 0;
    return {};
  }

  Result<void> on(const Block& step) {
    ++result_.expectations;
    LOAM_TRY(id, tenant(step.tenant));
    world_.advance_to(now());
    const std::vector<Line> actual = step.kind == BlockKind::bill     ? story_.bill_of(id)
                                     : step.kind == BlockKind::ledger ? story_.ledger_of(id)
                                                                      : story_.issued_to(id);
    for (std::size_t i = 0; i < std::max(actual.size(), step.lines.size()); ++i) {
      const bool same = i < actual.size() && i < step.lines.size() &&
                        agrees(step.lines[i].words, actual[i].words);
      if (same) continue;
      if (update_) {
        replace_block(step, actual);
        return {};
      }
      const Line& at = i < step.lines.size() ? step.lines[i] : statement_->line;
      const std::string there =
          i < actual.size()
              ? "the " + std::string("line is: ") +
                    written(actual[i].words,
                            i < step.lines.size() ? step.lines[i].words : std::vector<Word>{})
              : "there is no such line";
      return fault_at(
          scenario_.file, at, at.words.front().column, there,
          "if that is right, take it over with: loam scenario --update " + scenario_.file);
    }
    return {};
  }

  void replace_block(const Block& step, const std::vector<Line>& actual) {
    std::vector<std::string> lines;
    // The attributes that the block showed before; all of them where it was empty.
    std::vector<Word> like;
    for (const Line& line : step.lines) {
      for (const Word& word : line.words) like.push_back(word);
    }
    for (const Line& line : actual) {
      lines.push_back("  " + (step.lines.empty() ? line.written() : written(line.words, like)));
    }
    if (step.lines.empty()) {
      // Nothing to replace: below the block's own line, which stays.
      lines.insert(lines.begin(), statement_->line.written());
      result_.edits[statement_->line.number] = lines;
      return;
    }
    for (const Line& line : step.lines) result_.edits[line.number] = {};
    result_.edits[step.lines.front().number] = lines;
  }

  struct Expectation {
    std::size_t line = 0;
    std::vector<Word> words;
    bool met = false;
  };

  const Scenario& scenario_;
  bool update_;
  Instant start_;
  AuditedWorld world_;
  Story story_;
  ScenarioResult result_;
  const Statement* statement_ = nullptr;
  std::map<std::string, DeviceFacts> types_;
  std::size_t first_ = 0;           // happenings since the last `at`
  std::vector<Expectation> group_;  // since the last `at`
  std::size_t quiet_line_ = 0;
};

}  // namespace

Result<ScenarioResult> run_scenario(const Scenario& scenario, bool update) {
  Runner runner(scenario, update);
  return runner.run();
}

}  // namespace loam::sim
