#!/usr/bin/env bash
# check_house_test.sh CHECKER: each house rule finds its sample violation at the right line, lets the
# lawful neighbour pass, and obeys `house-allow`. A checker that finds nothing would pass unnoticed.
set -euo pipefail

checker="$1"
sample="$(mktemp -d)"
trap 'rm -rf "$sample"' EXIT
failures=0

# put FILE: writes standard input to FILE of a fresh sample tree that is otherwise lawful.
put() {
  find "$sample" -mindepth 1 -delete
  mkdir -p "$sample/src/base" "$sample/$(dirname "$1")"
  printf '// A lawful header.\n#pragma once\n' >"$sample/src/base/lawful.hpp"
  cat >"$sample/$1"
}

report() {
  printf 'FAILED %s\n%s\n' "$1" "$2"
  failures=$((failures + 1))
}

# finds WHAT 'FILE:LINE: RULE': exactly this one fault.
finds() {
  local found
  if found="$("$checker" "$sample")"; then
    report "$1: nothing was found" "$found"
  elif [[ $found != "$2: "* || $(wc -l <<<"$found") -ne 1 ]]; then
    report "$1: expected only $2" "$found"
  fi
}

passes() {
  local found
  found="$("$checker" "$sample")" || report "$1: found a fault" "$found"
}

# include FILE LINE: a file that opens lawfully and has LINE as its second line.
include() { printf '// A sample.\n%s\n' "$2" | put "$1"; }

refused_include() {
  include "$1" "#include \"$2\""
  finds "$1 includes $2" "$1:2: include"
}

allowed_include() {
  include "$1" "#include \"$2\""
  passes "$1 includes $2"
}

include_directions() {
  refused_include src/base/a.cpp domain/task.hpp
  refused_include src/domain/a.cpp billing/rate.hpp
  refused_include src/billing/a.cpp schedule/plan.hpp
  refused_include src/schedule/a.cpp infer/batch.hpp
  refused_include src/infer/a.cpp billing/rate.hpp
  refused_include src/engine/a.cpp store/journal.hpp
  refused_include src/store/a.cpp node/device.hpp
  refused_include src/node/a.cpp http/server.hpp
  refused_include src/sim/a.cpp store/journal.hpp
  refused_include src/http/a.cpp api/server.hpp
  refused_include src/api/a.cpp gateway/route.hpp
  refused_include src/gateway/a.cpp api/server.hpp
  refused_include src/guard/a.cpp base/id.hpp
  refused_include src/node/a.cpp guard/hooks.h
  refused_include src/app/a.cpp guard/slice_page.h
  refused_include src/base/a.cpp lawful.hpp
  include src/attic/a.cpp '#include "base/id.hpp"'
  finds "a folder that no rule knows" "src/attic/a.cpp:1: include"
  allowed_include src/billing/a.cpp domain/task.hpp
  allowed_include src/engine/a.cpp billing/rate.hpp
  allowed_include src/node/a.cpp guard/slice_page.h
  allowed_include src/api/a.cpp http/server.hpp
  allowed_include src/gateway/a.cpp http/server.hpp
  allowed_include src/app/a.cpp node/device.hpp
  allowed_include tests/node/a.cpp store/journal.hpp
}

system_includes() {
  include src/node/a.cpp '#include <boost/beast/http.hpp>'
  finds "Beast outside http" "src/node/a.cpp:2: include"
  include src/http/a.cpp '#include <boost/beast/http.hpp>'
  passes "Beast in http"
  include src/api/a.hpp '#include <boost/json.hpp>'
  finds "JSON in a header" "src/api/a.hpp:2: heavy"
  include src/api/a.hpp '#include <boost/json/fwd.hpp>'
  passes "JSON's forward declarations"
  include src/engine/a.cpp '#include <mutex>'
  finds "a mutex in the core" "src/engine/a.cpp:2: pure"
  include src/store/a.cpp '#include <mutex>'
  passes "a mutex in the shell"
}

core_code() {
  include src/engine/a.cpp 'auto t = std::chrono::steady_clock::now();'
  finds "a clock" "src/engine/a.cpp:2: pure"
  include src/schedule/a.cpp 'std::random_device seed;'
  finds "a random device" "src/schedule/a.cpp:2: pure"
  include src/infer/a.cpp 'const char* home = std::getenv("HOME");'
  finds "the environment" "src/infer/a.cpp:2: pure"
  include src/node/a.cpp 'auto t = std::chrono::steady_clock::now();'
  passes "a clock in the shell"
  include src/engine/a.cpp 'int known(int);  // ::now() and random_device are only spoken of'
  passes "a comment"
  include src/engine/a.cpp 'const char* text = "std::random_device \" ::now()";'
  passes "a string"
  include src/domain/a.cpp 'std::unordered_map<int, int> tasks;'
  finds "a hash map" "src/domain/a.cpp:2: unordered"
  include src/billing/a.cpp 'double price = 0.02;'
  finds "a double in billing" "src/billing/a.cpp:2: float"
  include src/base/money.cpp 'float price = 0;'
  finds "a float in money" "src/base/money.cpp:2: float"
  include src/schedule/a.cpp 'double worth = 0.5;'
  passes "a double elsewhere"
  include src/billing/a.cpp 'int doubled = 2; int price = 1'"'"'000; int float_free = 1;'
  passes "words that hold the word"
}

allowances() {
  printf '// A sample.\n// house-allow unordered: only looked up, never walked\n%s\n' \
    'std::unordered_map<int, int> by_id;' | put src/domain/a.cpp
  passes "an allowed hash map"
  printf '// A sample.\nstd::unordered_map<int, int> by_id;  // house-allow unordered\n' |
    put src/domain/a.cpp
  local found
  found="$("$checker" "$sample")" && report "an allowance without a reason passed" ""
  [[ $found == *"a.cpp:2: allow: "* ]] || report "an allowance without a reason is named" "$found"
  printf '// A sample.\n// house-allow float: wrong rule\nstd::unordered_map<int, int> by_id;\n' |
    put src/domain/a.cpp
  finds "an allowance of another rule" "src/domain/a.cpp:3: unordered"
}

file_allowances() {
  printf '// A sample.\n// house-allow-file heavy: internal to this folder\n%s\n%s\n' \
    '#include <boost/asio/post.hpp>' '#include <boost/asio/strand.hpp>' | put src/http/a.hpp
  passes "a rule allowed for the whole file"
  { echo '// A sample.' && lines '' 20 && echo '// house-allow-file heavy: too late to be seen' &&
    echo 'int x;'; } | put src/http/a.hpp
  finds "an allowance for the file at its end" "src/http/a.hpp:22: allow"
  { printf '// A sample.\n// house-allow-file heavy: the first file only\n' &&
    echo '#include <boost/json.hpp>'; } | put src/api/a.hpp
  mkdir -p "$sample/src/store"
  printf '// A sample.\n#include <boost/json.hpp>\n' >"$sample/src/store/b.hpp"
  finds "another file's allowance" "src/store/b.hpp:2: heavy"
}

lines() { local i; for ((i = 0; i < $2; ++i)); do printf '%s\n' "$1"; done; }

lengths() {
  { echo '// A sample.' && lines 'extern int x;' 600; } | put src/store/a.cpp
  finds "601 lines" "src/store/a.cpp:601: file-length"
  { echo '// A sample.' && lines 'extern int x;' 599; } | put src/store/a.cpp
  passes "600 lines"
  { printf '// A sample.\nnamespace a {\n\nint f(int b,\n      int c) {\n' && lines '  g();' 68 &&
    printf '}\n\n}  // namespace a\n'; } | put src/store/a.cpp
  finds "a function of 71 lines" "src/store/a.cpp:4: function-length"
  { printf '// A sample.\nnamespace a {\n\nint f(int b) {\n' && lines '  g();' 68 &&
    printf '}\n\nextern int x;\n' && lines '' 200 && printf '}  // namespace a\n'; } | put src/store/a.cpp
  passes "a function of 70 lines in a long namespace"
  { printf '// A sample.\nclass A {\n public:\n  int f() {\n' && lines '    g();' 70 &&
    printf '  }\n};\n'; } | put src/store/a.hpp
  finds "a long member" "src/store/a.hpp:4: function-length"
  { printf 'TEST(A, b) {\n' && lines '  g();' 110 && printf '}\n'; } | put tests/a/a_test.cpp
  passes "a test of 112 lines"
}

types() {
  printf '// A sample.\nnamespace loam::store {\n\nclass Page final : public A {\n' | put src/store/c.hpp
  printf '// A sample.\nnamespace loam::store {\n\nstruct Page {\n' >"$sample/src/store/b.hpp"
  finds "a type that two headers define" "src/store/c.hpp:4: twice"
  printf '// A sample.\nnamespace loam::store {\n\nstruct Page {\nclass Other;\n' | put src/store/c.hpp
  printf '// A sample.\nnamespace loam::store::b {\n\nstruct Page {\n' >"$sample/src/store/b.hpp"
  passes "one name in two namespaces"
}

names_and_openings() {
  include src/base/string_utils.cpp ''
  finds "a file of utils" "src/base/string_utils.cpp:1: name"
  include tests/misc/a.cpp ''
  finds "a folder of misc" "tests/misc/a.cpp:1: name"
  include src/base/utility_price.cpp ''
  passes "a word that begins alike"
  printf '#pragma once\n' | put src/base/a.hpp
  finds "a header without opening" "src/base/a.hpp:1: opening"
  printf '#include "base/lawful.hpp"\n' | put src/base/a.cpp
  finds "a lone source file without opening" "src/base/a.cpp:1: opening"
  printf '#include "base/lawful.hpp"\n' | put src/base/lawful_text.cpp
  passes "an implementation of a header"
  printf 'echo\n' | put tools/a.sh
  finds "a script without opening" "tools/a.sh:1: opening"
}

private_words() {
  include docs/a.md 'see /work/main/README.md'
  finds "a local path" "docs/a.md:2: private"
  include docs/a.md 'see ../shared/policies.md'
  finds "a folder outside" "docs/a.md:2: private"
  include docs/a.md 'as DESIGN.md says'
  finds "a page outside" "docs/a.md:2: private"
  include docs/a.md 'issue 12 asks for it'
  finds "a tracker's number" "docs/a.md:2: private"
  include tools/a.txt 'https://registry.example.org/'
  finds "a registry's host" "tools/a.txt:2: private"
  include docs/a.md 'the invoice is issued 12 hours later by a paid/work/split'
  passes "words that begin alike"
  include tests/node/a_test.cpp 'const auto state = root + "/work/state";'
  passes "a folder of that name"
}

empty_tree() {
  find "$sample" -mindepth 1 -delete
  "$checker" "$sample" >/dev/null 2>&1 && report "an empty tree passes" ""
  return 0
}

include_directions
system_includes
core_code
allowances
file_allowances
lengths
types
names_and_openings
private_words
empty_tree
((failures == 0)) || { echo "$failures expectation(s) failed" && exit 1; }
echo "the house rules hold their samples"
