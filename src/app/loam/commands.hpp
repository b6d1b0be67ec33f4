// The commands by noun, each file's share of the table. Pure.
#pragma once

#include "app/loam/command.hpp"

namespace loam::cli {

std::vector<Command> request_commands();  // quote, run, submit
std::vector<Command> trial_commands();    // trial
std::vector<Command> task_commands();     // ps, show, logs, stop, pause, resume, top
std::vector<Command> device_commands();
std::vector<Command> tenant_commands();
std::vector<Command> rate_commands();
std::vector<Command> budget_commands();
std::vector<Command> commit_commands();       // commit buy, commit list
std::vector<Command> reservation_commands();  // reservation make, quote, list, cancel
std::vector<Command> money_commands();        // bill, invoice, ledger
std::vector<Command> spending_commands();     // cost, cost export
std::vector<Command> efficiency_commands();   // cost efficiency
std::vector<Command> split_commands();        // cost split
std::vector<Command> cost_commands();         // advise, cost validate
std::vector<Command> access_commands();       // token, whoami, health
std::vector<Command> serving_commands();      // chat, endpoint
std::vector<Command> model_commands();        // model import, model list
std::vector<Command> journal_commands();      // backup, restore, verify, reload
std::vector<Command> simulation_commands();
std::vector<Command> self_commands();  // version, completion, help

// An option that is an instant, with seconds or without, or a day, which begins at midnight UTC;
// empty where it is not given.
Result<std::string> instant_or_day(const Arguments& arguments, const char* option);

}  // namespace loam::cli
