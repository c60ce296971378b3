# Debian packages: what is missing is installed, and a machine that has all of them is left alone.
#
# Sourced; messages.sh comes first. On other systems the user's own packages have to do, and CMake says what it misses.
build_packages=(g++ cmake ninja-build ccache mold pkg-config python3 python3-venv ca-certificates
  libtomlplusplus-dev libcli11-dev nlohmann-json3-dev libfmt-dev libspdlog-dev libxxhash-dev libyaml-cpp-dev libsqlite3-dev zlib1g-dev
  libeigen3-dev libgtest-dev libgmock-dev libbenchmark-dev)
test_packages=(openmpi-bin mpich)
# What the pages of `ridgeline report` are opened with in tests, which are left out where there is none.
browser_packages=(chromium-headless-shell fonts-dejavu-core)
corpus_packages=(bible-kjv)

missing_packages() {
  local have name
  have=$(dpkg-query -W -f '${db:Status-Abbrev}${Package}\n' "$@" 2>/dev/null | sed -n 's/^ii *//p') || true  # fails if it knows one not
  for name in "$@"; do
    grep -qxF -- "$name" <<<"$have" || printf '%s\n' "$name"
  done
}

# Sets as_root to the words that run a command as root.
find_root() {
  as_root=()
  [ "$(id -u)" = 0 ] && return
  local how="as root: apt-get install --no-install-recommends $*"
  command -v sudo >/dev/null || fail "packages are missing and there is neither root nor sudo. Run $how"
  as_root=(sudo)
  sudo -n true 2>/dev/null && return
  [ -t 2 ] && { : </dev/tty; } 2>/dev/null || fail "packages are missing and sudo wants a password, but there is no terminal. Run $how"
  say "sudo is needed to install packages:"
  sudo true </dev/tty || fail "sudo refused. Run $how"
}

apt_get() {
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@"
}

install_packages() {
  local missing
  command -v dpkg-query >/dev/null || { say "Packages: this is no Debian; expecting these to be here in some form: $*"; return; }
  mapfile -t missing < <(missing_packages "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  find_root "${missing[@]}"
  say "Packages: installing ${missing[*]}"
  logged apt-update apt_get update || warn "going on with the package lists that are here"
  logged apt-install apt_get install -y --no-install-recommends "${missing[@]}" ||
    fail "the packages could not be installed. Install them by hand and run the same command again: ${missing[*]}"
}
