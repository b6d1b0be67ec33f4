# check_house.awk: the house rules over the files named on the command line (see check_house.sh).
# POSIX awk: Debian's mawk has no interval expressions and no \b.

BEGIN {
  # Which folders of src a folder may include, besides itself. Arrows point down only; siblings
  # and the parts of the shell never see one another, except that api and gateway use http.
  core = "base domain billing schedule infer engine"
  may["base"] = ""
  may["domain"] = "base"
  may["billing"] = may["schedule"] = may["infer"] = "base domain"
  may["engine"] = "base domain billing schedule infer"
  may["http"] = may["store"] = may["node"] = may["sim"] = core
  may["api"] = may["gateway"] = core " http"
  may["app"] = core " http store node sim gateway api"
  may["guard"] = ""

  file_lines_max = 600
  function_lines_max = 70
  test_lines_max = 120  # a test is a story that is read from top to bottom

  # C++ that the core must not touch: it would not be a function any more.
  impure_include = "^(thread|mutex|shared_mutex|condition_variable|future|stop_token|" \
    "semaphore|latch|barrier|random|fstream|iostream|filesystem|unistd.h|pthread.h|fcntl.h|" \
    "sys/.*|boost/asio.*|boost/beast.*|sqlite3.h|libpq-fe.h|spdlog/.*)$"
  impure_call = "(::now|random_device|gettimeofday|clock_gettime|getenv|this_thread|std::time|" \
    "std::rand|std::thread|std::mutex)[^A-Za-z0-9_]"
  heavy_include = "^(boost/json(\\.hpp|/src.*)|boost/beast.*|boost/asio.*|toml\\+\\+/.*|CLI/.*)$"

  # Words that mean nothing to a reader outside.
  private_path = "/work/(main|wt|shared|\\.library)|\\.\\./shared|DESIGN\\.md"
  tracker = "[Ii]ssue #?[0-9]"
  author = "(Claude|Anthropic|ChatGPT|OpenAI Codex|Copilot)"
  registry = "https?://[a-z0-9.-]*(registry|mirror|artifactory|nexus)"
}

function fault(line, rule, text) {
  if (rule in allowed_in_file) return
  if ((rule in allowed) && (allowed[rule] == line || allowed[rule] == line - 1)) return
  printf "%s:%d: %s: %s\n", FILENAME, line, rule, text
  faults++
}

# Only where `line` is not the present one, for faults found at a file's end.
function fault_in(file, line, rule, text) {
  printf "%s:%d: %s: %s\n", file, line, rule, text
  faults++
}

function has_word(list, word) { return index(" " list " ", " " word " ") > 0 }

# The line without comments, string and character literals. `in_comment` lasts across lines.
function code_of(line,    out, c, next_two, quote) {
  out = ""
  while (line != "") {
    next_two = substr(line, 1, 2)
    if (in_comment) {
      if (next_two == "*/") { in_comment = 0; line = substr(line, 3) }
      else line = substr(line, 2)
      continue
    }
    if (next_two == "//") break
    if (next_two == "/*") { in_comment = 1; line = substr(line, 3); continue }
    c = substr(line, 1, 1)
    if (c == "\"" || (c == "'" && out !~ /[0-9A-Fa-f]$/)) {  # 1'000 holds no character
      quote = c
      line = substr(line, 2)
      while (line != "" && substr(line, 1, 1) != quote) {
        line = substr(line, substr(line, 1, 1) == "\\" ? 3 : 2)
      }
      line = substr(line, 2)
      out = out quote quote
      continue
    }
    out = out c
    line = substr(line, 2)
  }
  return out
}

function check_name(file,    parts, tokens, n, m, i, j) {
  n = split(file, parts, "/")
  for (i = 1; i <= n; ++i) {
    m = split(tolower(parts[i]), tokens, /[_.-]/)
    for (j = 1; j <= m; ++j) {
      if (has_word("misc util utils helper helpers manager common", tokens[j]))
        fault_in(file, 1, "name", "'" tokens[j] "' says nothing about what is inside")
    }
  }
}

# A header says what it is; so does a source file that is no header's implementation.
function check_opening(line) {
  if (language == "cpp" && is_header && line !~ /^(\/\/|\/\*)/)
    fault(1, "opening", "a file opens with a comment on what it is")
  if (language == "cpp" && !is_header && !in_tests && line !~ /^(\/\/|\/\*)/ && !has_header())
    fault(1, "opening", "a source file without a header of its name opens with a comment")
  if (language == "shell" && line !~ /^#/)
    fault(1, "opening", "a script opens with a comment on what it is")
}

# Whether foo_bar.cpp implements foo_bar.hpp or foo.hpp (or .h) of its folder.
function has_header(    stem) {
  stem = FILENAME
  sub(/\.[a-z]+$/, "", stem)
  while (1) {
    if ((stem ".hpp") in named || (stem ".h") in named) return 1
    if (stem !~ /_[a-z0-9]+$/) return 0
    sub(/_[a-z0-9]+$/, "", stem)
  }
}

function open_file(    parts, n) {
  check_length()
  current = FILENAME
  for (rule in allowed) delete allowed[rule]
  for (rule in allowed_in_file) delete allowed_in_file[rule]
  in_comment = 0
  raw_string = 0
  outer_start = member_start = 0
  outer = ""
  n = split(FILENAME, parts, "/")
  room = parts[1]
  folder = room == "src" && n > 2 ? parts[2] : ""
  in_core = folder != "" && has_word(core, folder)
  in_tests = room == "tests"
  is_header = FILENAME ~ /\.(hpp|h)$/
  language = "text"
  if (FILENAME ~ /\.(cpp|hpp|c|h|cl)$/) language = "cpp"
  if (FILENAME ~ /\.sh$/ || FILENAME == "dev" || FILENAME == ".ci/run") language = "shell"
  words_free = FILENAME ~ /^tools\/check_house\./ || FILENAME ~ /^tests\/house\//
  if (folder != "" && !(folder in may)) fault(1, "include", "no rule says what src/" folder " may include")
  check_opening($0)
}

function check_length() {
  if (current != "" && (language == "cpp" || language == "shell") && last_line > file_lines_max)
    fault_in(current, last_line, "file-length", last_line " lines; the most is " file_lines_max)
}

function check_words() {
  if (words_free) return
  if ($0 ~ private_path) fault(FNR, "private", "a path or page that only one machine has")
  if ($0 ~ tracker) fault(FNR, "private", "a tracker's number; say the reason itself")
  if ($0 ~ author) fault(FNR, "private", "names a tool that wrote it")
  if ($0 ~ registry) fault(FNR, "private", "the host of a package registry")
}

function check_include(    target, other) {
  if (match($0, /^#include *<[^>]*>/)) {
    target = substr($0, index($0, "<") + 1)
    sub(/>.*/, "", target)
    if (in_core && target ~ impure_include)
      fault(FNR, "pure", "<" target "> in the core, which has no clock, thread or I/O")
    if (target ~ /^boost\/beast/ && folder != "http" && room == "src")
      fault(FNR, "include", "only src/http sees Beast")
    if (is_header && room == "src" && target ~ heavy_include)
      fault(FNR, "heavy", "<" target "> costs seconds in every file that includes this header")
    return
  }
  if (!(folder in may) || !match($0, /^#include *"[^"]*"/)) return
  target = substr($0, index($0, "\"") + 1)
  sub(/".*/, "", target)
  if (target !~ /\//) {
    fault(FNR, "include", "write \"" folder "/" target "\": includes name the folder")
    return
  }
  other = target
  sub(/\/.*/, "", other)
  if (other == folder || has_word(may[folder], other)) return
  if (folder == "node" && target == "guard/slice_page.h") return
  fault(FNR, "include", "src/" folder " may not include \"" target "\"")
}

function check_purity(code) {
  if (in_core && (code " ") ~ impure_call)
    fault(FNR, "pure", "the core has no clock, random device, environment or thread")
  if (in_core && code !~ /^#/ && code ~ /unordered_(map|set|multimap|multiset)/)
    fault(FNR, "unordered", "its order is not the same everywhere; use std::map or a sorted vector")
  if ((folder == "billing" || FILENAME ~ /^src\/base\/money/) && \
      code ~ /(^|[^A-Za-z0-9_])(float|double)([^A-Za-z0-9_]|$)/)
    fault(FNR, "float", "money is an integer; floating point has no place here")
}

# Function lengths, from the layout that clang-format gives: a body closes with a lone brace at the
# indent its first line has. Depth 0, and depth 2 inside a class, struct or union.
function check_functions(code,    most, indent, length_now) {
  if (code ~ /^[ \t]*$/) return
  match(code, /^ */)
  indent = RLENGTH
  most = in_tests ? test_lines_max : function_lines_max
  if (indent == 0) {
    if (code ~ /^}/) {
      if (code ~ /^} *$/ && outer != "" &&
          outer !~ /^(namespace|class|struct|union|enum|extern|template)/) {
        length_now = FNR - outer_start + 1
        if (length_now > most)
          fault(outer_start, "function-length", length_now " lines; the most is " most)
      }
      outer = ""
    } else if (code !~ /^(#|\)|public|private|protected|template)/) {
      outer = code
      outer_start = FNR
    }
  } else if (indent == 2 && outer ~ /^(class|struct|union)/) {
    if (code ~ /^  } *$/) {
      length_now = FNR - member_start + 1
      if (length_now > most)
        fault(member_start, "function-length", length_now " lines; the most is " most)
    } else if (code !~ /^  [})]/) {
      member_start = FNR
    }
  }
}

# Two definitions of one type, in headers that may never meet: the linker keeps one of each function
# that mentions it (basic.def.odr), for both. Types are told by their namespaces.
function check_types(code,    type, name) {
  if (!is_header || room != "src") return
  if (match(code, /^namespace [a-z_:]+ \{/)) {
    space = substr(code, 11, RLENGTH - 12)
  } else if (code ~ /^(struct|class|enum class) [A-Za-z0-9]+( final)?( : .*)? *\{/) {
    name = code
    sub(/^(struct|enum class|class) /, "", name)
    sub(/[^A-Za-z0-9].*/, "", name)
    type = space "::" name
    if (type in defined_in && defined_in[type] != FILENAME)
      fault(FNR, "twice", type " is defined in " defined_in[type] " too; give one another name")
    defined_in[type] = FILENAME
  }
}

# "house-allow RULE: reason" for this line and the next, "house-allow-file RULE: reason" in the first
# 20 lines for the whole file.
function note_allowance(    text, rule, whole_file) {
  if (words_free || FILENAME ~ /\.md$/ || !match($0, /house-allow(-file)? [a-z-]+/)) return
  rule = substr($0, RSTART, RLENGTH)
  text = substr($0, RSTART + RLENGTH)
  whole_file = rule ~ /^house-allow-file /
  sub(/^[^ ]* /, "", rule)
  if (text !~ /^: *[A-Za-z0-9]/)
    fault(FNR, "allow", "house-allow " rule " gives no reason")
  else if (!whole_file)
    allowed[rule] = FNR
  else if (FNR <= 20)
    allowed_in_file[rule] = 1
  else
    fault(FNR, "allow", "house-allow-file belongs in the first 20 lines")
}

BEGIN {
  for (i = 1; i < ARGC; ++i) {
    named[ARGV[i]] = 1
    check_name(ARGV[i])
  }
}

FNR == 1 { open_file() }
{
  last_line = FNR
  note_allowance()
  check_words()
}
language == "cpp" {
  # A raw string may hold anything: its lines are no code.
  if (raw_string) {
    if (index($0, raw_end)) raw_string = 0
    next
  }
  check_include()
  if (match($0, /R"[A-Za-z_]*\(/)) {
    raw_end = ")" substr($0, RSTART + 2, RLENGTH - 3) "\""
    if (!index(substr($0, RSTART + RLENGTH), raw_end)) raw_string = 1
    $0 = substr($0, 1, RSTART - 1)
  }
  code = code_of($0)
  check_purity(code)
  check_functions(code)
  check_types(code)
}
END {
  check_length()
  exit faults > 0
}
