# For other scripts, in the project's folder: what must be there before anything runs.

if ! node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 11) ? 0 : 1)' \
  2>/dev/null; then
  echo "Node 20.11 or newer is needed; found: $(node --version 2>/dev/null || echo none)" >&2
  exit 1
fi

export npm_config_loglevel=error npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false
# An account without a home has nowhere to keep downloads.
[ -w "${HOME:-/}" ] || export HOME="$PWD/.home"

# Names, sizes and checksums of all files of some kind, as one number.
stamp_of() {
  find "$@" -type d \( -name node_modules -o -name dist -o -name '.*' ! -name . \) -prune -o -type f \
    \( -name '*.ts' -o -name package.json -o -name pnpm-lock.yaml -o -name build.sh \) -print0 |
    LC_ALL=C sort -z | xargs -0 cksum | cksum
}

# With tools: also what only the developers need. Once that is there, it stays.
prepare_install() {
  stamp="$(stamp_of pnpm-lock.yaml package.json */package.json */*/package.json) $(node --version)"
  only=--prod
  if [ -e node_modules/vitest ] || [ "${1:-}" = with-tools ]; then only=; fi
  if [ "$stamp" = "$(cat node_modules/.installed 2>/dev/null)" ] && { [ -n "$only" ] || [ -e node_modules/vitest ]; }; then
    return
  fi
  echo 'installing'
  npx --yes pnpm@10.34.9 install --frozen-lockfile --ignore-scripts $only --reporter=append-only \
    --config.confirm-modules-purge=false
  echo "$stamp" >node_modules/.installed
}

prepare_build() {
  stamp="$(stamp_of packages services gateway launcher scripts pnpm-lock.yaml)"
  [ "$stamp" = "$(cat launcher/dist/.built 2>/dev/null)" ] && return
  echo 'building'
  sh scripts/build.sh
  echo "$stamp" >launcher/dist/.built
}
