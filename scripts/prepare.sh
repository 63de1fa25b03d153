# For other scripts, in the project's folder: what must be there before anything runs.

if ! node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 11) ? 0 : 1)' \
  2>/dev/null; then
  echo "Node 20.11 or newer is required, found: $(node --version 2>/dev/null || echo none). Install Node 24 or 22 (https://nodejs.org)" >&2
  exit 1
fi

export npm_config_loglevel=error npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false
# With the default, a missing network is reported after more than a minute.
export npm_config_fetch_retry_mintimeout="${npm_config_fetch_retry_mintimeout:-1000}"
# An account without a home has nowhere to keep downloads.
[ -w "${HOME:-/}" ] || export HOME="$PWD/.home" npm_config_cache="$PWD/.home/.npm"

# With tools: also what only developers need. Once that is there, it stays.
prepare_install() {
  stamp=$(cat pnpm-lock.yaml pnpm-workspace.yaml | cksum)
  tools=${1:-}
  [ -e node_modules/vitest ] && tools=with-tools
  installed=$(cat node_modules/.installed 2>/dev/null || true)
  [ "$stamp $tools" = "$installed" ] && return
  case $installed in
    '') echo 'installing dependencies; only the first time' ;;
    "$stamp "*) echo 'installing the tools of developers; only the first time' ;;
    *) echo 'installing dependencies, which have changed' ;;
  esac
  only=--prod
  [ -n "$tools" ] && only=
  npx --yes pnpm@10.34.9 install --frozen-lockfile --ignore-scripts $only --reporter=append-only \
    --config.confirm-modules-purge=false || prepare_failed
  echo "$stamp $tools" >node_modules/.installed
}

prepare_failed() {
  registry=$(npm config get registry 2>/dev/null || echo 'the npm registry')
  cat >&2 <<END
cannot install dependencies (the lines above have the reason).
- The first start, and the first one after an upgrade, read from the package registry $registry
  For a mirror: npm_config_registry=URL. For a proxy: npm_config_https_proxy=URL. Its certificate: NODE_EXTRA_CA_CERTS=FILE.
  Without a network, copy a folder in which the product has been started once on a like machine.
- This user must be able to write to $PWD
END
  exit 1
}

# The argument is the revision, where the tree does not show it.
prepare_build() {
  sources=$({
    cat package.json pnpm-lock.yaml scripts/build.sh scripts/bundle.sh
    find packages services gateway launcher -name node_modules -prune -o -path '*/src/*' -type f -print0 |
      LC_ALL=C sort -z | xargs -0 cksum
  } | cksum)
  revision=${1:-$(prepare_revision "$sources")}
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
