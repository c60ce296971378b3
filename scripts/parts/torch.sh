# Which torch is used, and the virtual environments.
#
# Sourced; messages.sh comes first. find_torch CHOICE sets
#   torch_folder   holds include/ and lib/
#   torch_python   imports that torch; empty for an unpacked libtorch
# from, in this order: CHOICE (--torch, remembered for later runs), the active virtual or conda environment if it has
# torch, and .venv with the version that requirements.txt pins. A torch of the user's own is never changed.

# torch_of PYTHON: its torch package's folder, or nothing. Does not import it, which would take seconds.
torch_of() {
  [ -x "$1" ] && "$1" -c '
import importlib.util, os, sys
spec = importlib.util.find_spec("torch")
folder = spec.submodule_search_locations[0] if spec and spec.submodule_search_locations else ""
if not os.path.exists(os.path.join(folder, "lib", "libtorch_cpu.so")): sys.exit(1)
print(os.path.realpath(folder))' 2>/dev/null
}

torch_version() { "$1" -c 'import importlib.metadata as m; print(m.version("torch"))' 2>/dev/null; }

use_choice() {
  local choice=$1 candidate
  if [ -f "$choice/lib/libtorch_cpu.so" ]; then
    torch_folder=$(realpath "$choice")
    # A package inside an environment: ENVIRONMENT/lib/pythonX.Y/site-packages/torch.
    candidate=$(realpath -s "$torch_folder/../../../../bin/python3")
    if [ "$(torch_of "$candidate")" = "$torch_folder" ]; then torch_python=$candidate; fi
    return
  fi
  for candidate in "$choice/bin/python3" "$choice/bin/python" "$choice"; do
    [ -f "$candidate" ] && torch_folder=$(torch_of "$candidate") || continue
    torch_python=$(realpath -s "$candidate")
    return
  done
  refuse "--torch $choice: no torch there. Expected a torch package or libtorch folder (with lib/libtorch_cpu.so)," \
    "a Python that has torch, or a virtual environment that has it; '--torch pinned' for the pinned one."
}

find_torch() {
  torch_folder='' torch_python=''
  local choice=$1 active
  if [ "$choice" = pinned ]; then
    rm -f "$state/torch"
  elif [ -n "$choice" ]; then
    use_choice "$choice"
    realpath -s "$choice" >"$state/torch"
    return
  else
    for active in "${VIRTUAL_ENV:-}" "${CONDA_PREFIX:-}"; do
      [ -n "$active" ] && [ "$active" != "$root/.venv" ] && torch_folder=$(torch_of "$active/bin/python3") || continue
      torch_python=$active/bin/python3
      say "Torch: that of the active environment, $active"
      return
    done
    if [ -s "$state/torch" ]; then
      choice=$(<"$state/torch")
      if [ -e "$choice" ]; then
        say "Torch: $choice, as --torch said before (--torch pinned goes back)"
        use_choice "$choice"
        return
      fi
      warn "$choice, which --torch named before, is gone; using the pinned torch"
    fi
  fi
  make_environment "$root/.venv"
  pip_install "$root/.venv" -r "$root/requirements.txt"
  torch_python=$root/.venv/bin/python3
  torch_folder=$(torch_of "$torch_python") || fail ".venv has no usable torch though pip installed it. Remove .venv and run the same command again."
}

# make_environment FOLDER [PYTHON]
make_environment() {
  local python=${2:-python3}
  "$1/bin/python3" -c 'import pip' 2>/dev/null && return
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null ||
    fail "$(command -v "$python" || echo "$python") is missing or older than Python 3.10, which torch needs."
  rm -rf "$1"
  say "Python: making $1 with $("$python" --version)"
  logged venv "$python" -m venv "$1" || fail "no virtual environment could be made in $1 (on Debian, python3-venv makes it possible)."
}

# What pip_install was told and what it left, so that the next run can tell in no time that nothing changed.
pip_stamp() {
  local environment=$1 argument
  shift
  for argument in "$@"; do
    if [ -f "$argument" ]; then cat "$argument"; else echo "$argument"; fi
  done | cksum
  stat -c %y "$environment"/lib/python3*/site-packages
}

# pip_install ENVIRONMENT ARGUMENTS...: offline and without a word if all is there already.
pip_install() {
  local environment=$1 python=$1/bin/python3 try stamp
  shift
  stamp=$environment/ridgeline-$(cksum <<<"$*" | cut -d ' ' -f 1).stamp
  [ -f "$stamp" ] && [ "$(<"$stamp")" = "$(pip_stamp "$environment" "$@")" ] && return
  if "$python" -m pip install -q --disable-pip-version-check --no-index "$@" >/dev/null 2>&1; then
    pip_stamp "$environment" "$@" >"$stamp"
    return
  fi
  case $* in
    *requirements.txt*) require_disk "$root" 3 "torch (a build with CUDA, which pip's sources may give, 9 GiB)" ;;
  esac
  say "Python: installing $* (first time only; a torch with CUDA is several GB)"
  for try in 1 2; do
    live pip "$python" -m pip install --disable-pip-version-check "$@" && { pip_stamp "$environment" "$@" >"$stamp"; return; }
    [ "$try" = 2 ] || { warn "pip failed; trying once more"; sleep 3; }
  done
  fail "pip could not install $*. Look above or in .setup/pip.log for: no network, a full disk ('No space left')," \
    "or no build of that version for $("$python" --version) ('No matching distribution'; then use --torch with a PyTorch of your own)."
}

# Python with torch and the packages of requirements-test.txt, as test_python. A torch of the user's own is seen through
# a path file from an environment of ours, so that nothing is installed into theirs.
find_test_python() {
  local environment=$root/.venv constraint=$state/constraint.txt
  if [ -n "$torch_python" ] && [ "$torch_python" != "$root/.venv/bin/python3" ]; then
    environment=$state/python
    if [ -x "$environment/bin/python3" ] && [ "$(torch_of "$environment/bin/python3")" != "$torch_folder" ]; then
      rm -rf "$environment"  # of another torch
    fi
    make_environment "$environment" "$torch_python"
    dirname "$torch_folder" >"$("$environment/bin/python3" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/their_torch.pth"
  elif [ -z "$torch_python" ]; then
    make_environment "$environment"  # an unpacked libtorch: the reference is the pinned torch
    pip_install "$environment" -r "$root/requirements.txt"
  fi
  test_python=$environment/bin/python3
  echo "torch==$(torch_version "$test_python")" >"$constraint"
  pip_install "$environment" -r "$root/requirements-test.txt" -c "$constraint"
}
