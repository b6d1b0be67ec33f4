// loam: the command line.
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>

#include "app/loam/program.hpp"

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// Of the terminal behind `descriptor`; 0 where there is none.
std::size_t columns_of(int descriptor) {
  winsize size{};
  if (::isatty(descriptor) == 0 || ::ioctl(descriptor, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  // https://no-color.org: set and not empty means no colour, whatever its value.
  const bool wanted = variable("NO_COLOR").empty() && variable("TERM") != "dumb";
  loam::cli::Console console{std::cout, std::cerr};
  console.out_is_terminal = ::isatty(STDOUT_FILENO) != 0;
  console.err_is_terminal = ::isatty(STDERR_FILENO) != 0 && variable("TERM") != "dumb";
  console.colour = console.out_is_terminal && wanted;
  console.err_colour = console.err_is_terminal && wanted;
  console.columns = columns_of(STDOUT_FILENO);
  return loam::cli::run_program({argv + 1, argv + argc}, console, variable);
}
