// quote, run, submit.
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/loam/commands.hpp"
#include "app/loam/follow.hpp"
#include "app/loam/human.hpp"
#include "app/loam/request.hpp"

namespace loam::cli {
namespace {

// What the last runs of that name say about what is asked for.
void say_suggestion(Session& session, const api::QuoteView& quote) {
  if (!quote.suggestion.empty()) session.say("note: " + printable(quote.suggestion));
}

// How much compute a task gets that left it to its earlier runs.
void say_taken(Session& session, const api::QuoteView& quote) {
  if (!quote.takes.empty()) session.say("takes " + printable(quote.takes));
}

Result<int> run_quote(Session& session, const Arguments& arguments) {
  LOAM_TRY(request, request_of(session, arguments));
  // What it costs does not hang on what is run.
  if (request.command.empty()) request.command = {"true"};
  LOAM_TRY(client, session.client());
  LOAM_TRY(quote, client->quote(request));
  if (session.json()) return session.print_json(quote);
  session.out() << quote_text(quote, arguments, request, session.console().colour);
  say_suggestion(session, quote);
  return 0;
}

// Whether somebody pipes data in, or a file that is not empty.
bool stdin_has_data() {
  struct stat file {};
  if (::fstat(STDIN_FILENO, &file) != 0) return false;
  if (S_ISREG(file.st_mode)) return file.st_size > 0;
  int bytes = 0;
  return S_ISFIFO(file.st_mode) && ::ioctl(STDIN_FILENO, FIONREAD, &bytes) == 0 && bytes > 0;
}

Result<api::TaskRequest> request_with_command(const Session& session, const Arguments& arguments) {
  LOAM_TRY(request, request_of(session, arguments));
  if (request.command.empty())
    return invalid("there is no program to run", "name it after --, such as: -- python3 train.py");
  return request;
}

Result<int> run_run(Session& session, const Arguments& arguments) {
  LOAM_TRY(request, request_with_command(session, arguments));
  LOAM_TRY(client, session.client());
  LOAM_TRY(quote, client->quote(request));
  session.say(quote_line(quote));
  if (!session.json()) say_suggestion(session, quote);
  if (!session.json()) say_taken(session, quote);
  if (has_own_folder(arguments, request)) {
    session.say("it runs in " + printable(request.working_directory) +
                ", where it may write; --mount and --workdir give it another folder");
  }
  if (stdin_has_data())
    session.say("the standard input is not passed on: the task's is empty; give it a file");
  LOAM_TRY(task, client->submit(request));
  const bool waits = task.state == "waiting" && !task.reason.empty();
  session.say(task.id + " submitted" + (waits ? "; it waits: " + printable(task.reason) : ""));
  return follow(session, task);
}

Result<int> run_submit(Session& session, const Arguments& arguments) {
  LOAM_TRY(request, request_with_command(session, arguments));
  LOAM_TRY(client, session.client());
  LOAM_TRY(task, client->submit(request));
  if (session.json()) return session.print_json(task);
  session.out() << task.id << "\n";
  return 0;
}

}  // namespace

std::vector<Command> request_commands() {
  const Operand program{"CMD…", "the program and its arguments, after --", Operand::Kind::program};
  return {
      {"quote",
       "What would run where, when, and at what price",
       "Nothing is set aside and nothing starts. The defaults that were filled in are shown.",
       "loam quote --ce 25 --memory 10GiB --time 2h\n"
       "loam quote --share 0.3 --tenant acme",
       {program},
       request_options(),
       run_quote},
      {"run",
       "Run a program on a slice of a device and follow it to its end",
       "Prints a quote first, then streams the program's output to the same streams here and\n"
       "ends with its exit status (see: loam help exit-codes). Ctrl-C stops the task cleanly,\n"
       "with its grace period; a second Ctrl-C leaves it to itself.\n"
       "With --json the task's document is the standard output; all else goes to the error stream.",
       "loam run --share 0.3 --time 10m -- ./train --epochs 3\n"
       "loam run --ce 25 --memory 10GiB --mount /data:/data --env SEED=7 -- python3 train.py",
       {program},
       request_options(),
       run_run,
       true},
      {"submit",
       "Submit a task and print its id",
       "",
       "loam submit --ce 25 --time 2h --name nightly -- ./train\n"
       "loam submit --file task.json",
       {program},
       request_options(),
       run_submit,
       true},
  };
}

}  // namespace loam::cli
