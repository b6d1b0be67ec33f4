// The commands by noun, each file's share of the table. Pure.
#pragma once

#include "app/loam/command.hpp"

namespace loam::cli {

std::vector<Command> request_commands();  // quote, run, submit
std::vector<Command> trial_commands();    // trial
std::vector<Command> task_commands();     // ps, show, logs, stop, pause, resume, top
std::vector<Command> device_commands();
std::vector<Command> tenant_commands();
std::vector<Command> money_commands();     // rate, bill, invoice, ledger
std::vector<Command> spending_commands();  // cost, cost export
std::vector<Command> cost_commands();      // advise, cost validate
std::vector<Command> access_commands();    // token, whoami, health
std::vector<Command> journal_commands();   // backup, restore, verify, reload
std::vector<Command> simulation_commands();
std::vector<Command> self_commands();  // version, completion, help

}  // namespace loam::cli
