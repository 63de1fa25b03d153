# For other scripts, in the project's folder: what must be there before anything runs.

if ! node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 11) ? 0 : 1)' \
  2>/dev/null; then
  echo "Node 20.11 or newer is needed; found: $(node --version 2>/dev/null || echo none)" >&2
  exit 1
fi

export npm_config_loglevel=error npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false
# An account without a home has nowhere to keep downloads.
[ -w "${HOME:-/}" ] || export HOME="$PWD/.home" npm_config_cache="$PWD/.home/.npm"

# With tools: also what only developers need. Once that is there, it stays.
prepare_install() {
  stamp=$(cat pnpm-lock.yaml pnpm-workspace.yaml | cksum)
  tools=${1:-}
  [ -e node_modules/vitest ] && tools=with-tools
  [ "$stamp $tools" = "$(cat node_modules/.installed 2>/dev/null)" ] && return
  echo 'installing what it is made of; only the first time'
  only=--prod
  [ -n "$tools" ] && only=
  npx --yes pnpm@10.34.9 install --frozen-lockfile --ignore-scripts $only --reporter=append-only \
    --config.confirm-modules-purge=false
  echo "$stamp $tools" >node_modules/.installed
}

prepare_build() {
  sources=$({
    cat package.json pnpm-lock.yaml scripts/build.sh
    find packages services gateway launcher -name node_modules -prune -o -path '*/src/*' -type f -print0 |
      LC_ALL=C sort -z | xargs -0 cksum
  } | cksum)
  revision=$(prepare_revision "$sources")
  stamp="$sources $revision"
  [ "$stamp" = "$(cat launcher/dist/.built 2>/dev/null)" ] && return
  echo 'building'
  sh scripts/build.sh "$revision"
  echo "$stamp" >launcher/dist/.built
}

# Prints 12 digits of the commit, with -dirty if files are modified. An archive that git has made contains the commit;
# any other tree is described by a checksum of its sources.
prepare_revision() {
  if [ -e .git ] && git -c safe.directory="$PWD" describe --always --abbrev=12 --exclude '*' --dirty 2>/dev/null; then
    return
  fi
  read -r archived <scripts/archived-revision
  case $archived in
    *Format*) echo "tree-${1%% *}" ;;
    *) echo "$archived" | cut -c1-12 ;;
  esac
}
