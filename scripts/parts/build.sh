# Configures and builds.
#
# Sourced; messages.sh and torch.sh come first.

# cached FOLDER NAME: a value in FOLDER's CMake cache.
cached() { sed -n "s/^$2:[A-Z]*=//p" "$1/CMakeCache.txt" 2>/dev/null; }

# configure FOLDER NAME=VALUE...: does nothing if the folder is configured so already; ninja itself sees to edited CMake files.
configure() {
  local folder=$1 setting definitions=() same=1
  shift
  if [ -f "$folder/CMakeCache.txt" ] && [ "$(cached "$folder" CMAKE_HOME_DIRECTORY)" != "$root" ]; then
    say "Build: $folder was made for another checkout; starting it anew"
    rm -rf "$folder"
  fi
  for setting in "$@"; do
    definitions+=("-D$setting")
    [ "$(cached "$folder" "${setting%%=*}")" = "${setting#*=}" ] || same=0
  done
  [ "$same" = 1 ] && [ -f "$folder/build.ninja" ] && return
  say "Build: configuring $folder"
  logged configure cmake -S "$root" -B "$folder" -G Ninja "${definitions[@]}" ||
    fail "CMake could not configure the build. If a package is named above, install it and run the same command again."
}

# A translation unit with torch's headers takes up to 2 GiB.
build_jobs() {
  local cores memory
  cores=$(nproc)
  memory=$(awk '/^MemAvailable:/ {print int($2 / 1048576 / 2)}' /proc/meminfo)
  [ "$memory" -ge 1 ] || memory=1
  echo $((cores < memory ? cores : memory))
}

# build FOLDER [TARGET...]: without targets all of it.
build() {
  local folder=$1 command jobs since=''
  shift
  jobs=$(build_jobs)
  command=(cmake --build "$folder" -j "$jobs")
  [ $# = 0 ] || command+=(--target "$@")
  [ -e "$folder/.ninja_log" ] || since=' (minutes the first time, then seconds)'
  say "Build: ${*:-everything} in $folder, $jobs at a time$since"
  live build "${command[@]}" && return
  [ ! -s "$state/build.log" ] || grep -m 5 -E 'error:|FAILED:' "$state/build.log" >&2 || true
  fail "the build failed, see above and .setup/build.log."
}
