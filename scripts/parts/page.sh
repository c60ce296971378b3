# The chart library that the pages of `ridgeline report` embed, from npm: src/report/page/package-lock.json pins version and
# checksum. With tests also what drives a browser.
#
# Sourced; messages.sh and packages.sh come first.

# install_page PACKAGES TESTS (0 or 1 each): into .setup/page. Without it all but `report --output` works.
install_page() {
  local from=$root/src/report/page folder=$state/page omit=(--omit=dev) wanted stamp
  [ "$2" = 0 ] || omit=()
  stamp=$folder/installed-$2
  wanted=$(cksum <"$from/package-lock.json")
  [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ] && return
  if ! command -v npm >/dev/null; then
    [ "$1" = 0 ] || install_packages nodejs npm
    command -v npm >/dev/null || { warn "no npm: built without the chart library, so 'ridgeline report --output' cannot write pages"; return; }
  fi
  say "Page: installing the chart library of reports"
  mkdir -p "$folder"
  rm -f "$folder"/installed-*
  cp "$from/package.json" "$from/package-lock.json" "$folder/"
  if logged npm npm ci --prefix "$folder" ${omit[@]+"${omit[@]}"} --ignore-scripts --no-audit --no-fund; then
    echo "$wanted" >"$stamp"
    [ "$2" = 0 ] || echo "$wanted" >"$folder/installed-0"
  else
    warn "npm could not install the chart library (see .setup/npm.log): 'ridgeline report --output' cannot write pages"
  fi
}

# The tests of pages are skipped, with a message, where no browser can be had.
install_browser() {
  command -v dpkg-query >/dev/null || return 0
  [ -z "$(missing_packages "${browser_packages[@]}")" ] ||
    (install_packages "${browser_packages[@]}") || warn "no browser: the tests of report pages are skipped"
}
