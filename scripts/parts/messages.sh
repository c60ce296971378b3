# How the set-up talks: steps on stderr, long output in .setup/*.log, and what went wrong with what to do.
#
# Sourced. Expects root (the checkout) and quiet (0 or 1).
state=$root/.setup
mkdir -p "$state"

say() { [ "$quiet" = 1 ] || printf '%s\n' "$*" >&2; }
warn() { printf 'warning: %s\n' "$*" >&2; }
fail() { printf 'set-up: %s\n' "$*" >&2; exit 1; }
refuse() { printf 'set-up: %s\n' "$*" >&2; exit 2; }

# logged NAME COMMAND...: output goes to .setup/NAME.log; if the command fails, its last lines are shown.
logged() {
  local log=$state/$1.log
  shift
  "$@" </dev/null >"$log" 2>&1 && return 0
  local code=$?
  printf 'set-up: this failed (exit code %s): %s\nset-up: the last lines of %s:\n' "$code" "$*" "$log" >&2
  tail -n 15 "$log" | sed 's/^/    /' >&2
  return "$code"
}

# live NAME COMMAND...: the same, but in full view where someone watches a terminal.
live() {
  if [ "$quiet" = 0 ] && [ -t 2 ]; then "${@:2}" </dev/null >&2; else logged "$@"; fi
}

# require_disk FOLDER GIB WHY
require_disk() {
  local free
  free=$(df -Pk "$1" | awk 'NR == 2 {print int($4 / 1048576)}')
  [ "$free" -ge "$2" ] || fail "$1 has $free GiB free; $3 needs $2 GiB. Make room and run the same command again."
}
