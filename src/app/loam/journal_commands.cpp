// backup, restore, verify, reload.
#include <unistd.h>

#include <filesystem>

#include "app/loam/commands.hpp"
#include "app/loam/exit_code.hpp"
#include "app/loam/human.hpp"
#include "app/loam/session.hpp"
#include "store/backup.hpp"
#include "store/verify.hpp"

namespace loam::cli {
namespace {

namespace fs = std::filesystem;
using Kind = Option::Kind;

Result<std::string> absolute_path(const std::string& path) {
  std::error_code fault;
  const fs::path absolute = fs::absolute(path, fault);
  if (fault || path.empty()) return invalid("'" + path + "' is not a path", "name a file");
  return absolute.lexically_normal().string();
}

std::string data_folder(const Session& session, const Arguments& arguments) {
  const auto variable = [&](const char* name) { return session.variable(name); };
  return arguments.text("data", default_data_folder(variable, ::geteuid() == 0));
}

std::string json_text(const std::string& text) {
  // A shape of the API that is one text, so that one place alone writes JSON.
  const std::string document = api::to_json(api::ReloadView{text});
  const std::size_t colon = document.find(':');
  return document.substr(colon + 1, document.size() - colon - 2);
}

std::string json_list(const std::vector<std::string>& texts) {
  std::string list = "[";
  for (const std::string& text : texts) list += (list.size() == 1 ? "" : ",") + json_text(text);
  return list + "]";
}

std::string report_json(const store::VerifyReport& report) {
  return "{\"path\":" + json_text(report.path) + ",\"good\":" + (report.good() ? "true" : "false") +
         ",\"records\":" + std::to_string(report.records) +
         ",\"first\":" + json_text(to_text(report.first)) +
         ",\"last\":" + json_text(to_text(report.last)) + ",\"head\":" + json_text(report.head) +
         ",\"checked\":" + json_list(report.checked) +
         ",\"problems\":" + json_list(report.problems) + "}";
}

int print_report(Session& session, const store::VerifyReport& report) {
  const int status = report.good() ? exit_ok : exit_corrupt;
  if (session.json()) {
    session.out() << report_json(report) << "\n";
    return status;
  }
  const bool colour = session.console().colour;
  session.out() << facts_text(
      {{"journal", report.path},
       {"records", std::to_string(report.records)},
       {"from", report.records == 0 ? "" : instant_text(to_text(report.first)) + " UTC"},
       {"to", report.records == 0 ? "" : instant_text(to_text(report.last)) + " UTC"},
       {"head", report.head}},
      colour);
  for (const std::string& line : report.checked)
    session.out() << styled("good  ", Style::good, colour) << printable(line) << "\n";
  for (const std::string& line : report.problems)
    session.out() << styled("BAD   ", Style::bad, colour) << printable(line) << "\n";
  return status;
}

Result<int> run_backup(Session& session, const Arguments& arguments) {
  LOAM_TRY(path, absolute_path(arguments.operand(0)));
  LOAM_TRY(client, session.client());
  LOAM_TRY(backup, client->backup(path));
  if (session.json()) return session.print_json(backup);
  session.say(backup.path + ": " + std::to_string(backup.bytes) + " bytes, up to journal record " +
              std::to_string(backup.sequence) + ", verified; bring it back with: loam restore " +
              backup.path);
  return 0;
}

Result<int> run_restore(Session& session, const Arguments& arguments) {
  LOAM_TRY(file, absolute_path(arguments.operand(0)));
  LOAM_TRY(folder, absolute_path(data_folder(session, arguments)));
  const auto overwrite =
      arguments.has("set-aside") ? store::Overwrite::set_aside : store::Overwrite::refuse;
  auto done = store::restore(file, folder, overwrite);
  if (!done && done.error().message.ends_with("is there already")) {
    return Error{ErrorKind::conflict, done.error().message,
                 "restore into an empty folder, or add --set-aside to keep the present journal "
                 "under another name"};
  }
  LOAM_TRY(restored, std::move(done));
  if (!restored.set_aside.empty())
    session.say("the journal that was there is now " + restored.set_aside);
  return print_report(session, restored.report);
}

Result<int> run_verify(Session& session, const Arguments& arguments) {
  std::string path = arguments.operand(0);
  if (!path.empty() && arguments.has("data"))
    return invalid("both " + path + " and --data are given", "leave one of them out");
  if (path.empty()) path = data_folder(session, arguments) + "/journal.db";
  LOAM_TRY(report, store::verify_journal(path));
  return print_report(session, report);
}

Result<int> run_reload(Session& session, const Arguments&) {
  LOAM_TRY(client, session.client());
  LOAM_TRY(done, client->reload());
  if (session.json()) return session.print_json(done);
  session.say(done.summary);
  return 0;
}

}  // namespace

std::vector<Command> journal_commands() {
  const Option data{"--data", "DIR", "loamd's data folder; default: the one of this user's loamd",
                    Kind::value, "@path"};
  return {
      {"backup",
       "Copy the running daemon's journal to one file and verify the copy",
       "The file lies on the daemon's machine. What it restores to is the same bills.",
       "loam backup /var/backups/loam.db",
       {{"FILE", "a new file", Operand::Kind::one, "@path"}},
       {},
       run_backup},
      {"restore",
       "Bring a backup back into a data folder that no loamd uses",
       "",
       "loam restore /var/backups/loam.db --data /var/lib/loam",
       {{"FILE", "a backup", Operand::Kind::one, "@path"}},
       {{"Where",
         {data,
          {"--set-aside", "", "rename a journal that is there instead of refusing", Kind::flag}}}},
       run_restore},
      {"verify",
       "Check a journal: its structure, its hash chain and its books",
       "Changes nothing; may look at a journal in use. Exit code 7 where it is not good.",
       "loam verify\nloam verify /var/backups/loam.db",
       {{"FILE", "a journal or a backup; default: the one in --data", Operand::Kind::maybe,
         "@path"}},
       {{"Where", {data}}},
       run_verify},
      {"reload", "Let the daemon read its settings again", "", "loam reload", {}, {}, run_reload},
  };
}

}  // namespace loam::cli
