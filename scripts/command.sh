#!/bin/sh
# Runs a command of the launcher: scripts/command.sh status --json. A running product keeps its programs: only `restore`,
# which runs without one, builds what has changed. Only the answer goes to standard output.
set -eu
cd "$(dirname "$0")/.."
. scripts/prepare.sh

command=$1
shift
if [ "$command" = restore ] || [ ! -e "launcher/dist/$command.js" ]; then
  prepare_install >&2
  prepare_build >&2
fi
exec node "launcher/dist/$command.js" "$@"
