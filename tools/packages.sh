# shellcheck shell=bash
# packages.sh: finds and installs the missing packages of tools/packages.txt. Sourced by ./dev.

# packages_of GROUP...: the package names, one a line.
packages_of() {
  awk -v groups=" $* " '/^[^#]/ && index(groups, " " $1 " ") { print $2 }' \
    "${LOAM_PACKAGES_FILE:-tools/packages.txt}"
}

# missing_packages GROUP...: those of the groups that dpkg does not have installed, one a line.
# A command of a package's name counts as the package, however it came here (npm comes with nodejs in some places).
missing_packages() {
  local -a wanted=()
  local name
  while read -r name; do
    command -v "$name" >/dev/null || wanted+=("$name")
  done < <(packages_of "$@")
  ((${#wanted[@]} > 0)) || return 0
  # dpkg-query fails where it does not know a name: that package is missing, not an error.
  { dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${wanted[@]}" 2>/dev/null || true; } |
    awk -v wanted="${wanted[*]}" '
      $1 == "installed" { have[$2] = 1 }
      END { n = split(wanted, name, " "); for (i = 1; i <= n; ++i) if (!(name[i] in have)) print name[i] }'
}

# os_field NAME: one value of /etc/os-release, or nothing.
os_field() {
  sed -n "s/^$1=//p" /etc/os-release 2>/dev/null | tr -d '"' || true
}

is_debian_12() {
  command -v dpkg-query >/dev/null && [[ $(os_field ID) == debian && $(os_field VERSION_ID) == 12 ]]
}

# The command in front of apt-get: nothing for root, sudo otherwise.
as_root() {
  if ((EUID == 0)); then "$@"; else sudo "$@"; fi
}

require_debian_12() {
  is_debian_12 && return
  local system
  system="$(os_field PRETTY_NAME)"
  fail "${system:-this system} is not Debian 12, so nothing is installed by itself" \
    "install the equivalents of these and set LOAM_NO_INSTALL=1: $(packages_of "$@" | paste -sd' ')"
}

install_packages() {
  local -a missing=("$@")
  local install="apt-get install --yes --no-install-recommends ${missing[*]}"
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    fail "${#missing[@]} package(s) are missing and neither root nor sudo is here" \
      "run as root: apt-get update && $install"
  fi
  mkdir -p "$log_dir"
  local log="$log_dir/setup.log"
  printf '      installing %d package(s): %s\n' "${#missing[@]}" "${missing[*]}"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 update >"$log" 2>&1 ||
    { tail -n 5 "$log" >&2 && fail "apt-get update failed" "see $log"; }
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install --yes \
    --no-install-recommends "${missing[@]}" </dev/null 2>&1 | tee -a "$log" |
    awk '/^(Get|Setting up)/ { print "      " $0; fflush() }' ||
    { tail -n 5 "$log" >&2 && fail "apt-get install failed" "see $log"; }
}

# step_setup GROUP...: everything of the groups is installed afterwards.
step_setup() {
  step "set-up"
  [[ -n ${LOAM_NO_INSTALL:-} ]] && return
  require_debian_12 "$@"
  local -a missing
  mapfile -t missing < <(missing_packages "$@")
  if ((${#missing[@]})); then install_packages "${missing[@]}"; fi
}

# Says what set-up would install; changes nothing.
setup_dry_run() {
  require_debian_12 "$@"
  local -a missing
  mapfile -t missing < <(missing_packages "$@")
  if ((${#missing[@]} == 0)); then
    echo "nothing is missing"
  else
    echo "would install: ${missing[*]}"
  fi
}
