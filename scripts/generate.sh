#!/bin/sh
# Writes packages/{rpc,channel}/src/gen from proto/, below the folder given (default: the project). The generated code
# is committed; a test regenerates and compares.
set -eu
cd "$(dirname "$0")/.."
out=${1:-.}

generate() { # folder, options, files
  dir=$1 options=$2
  shift 2
  mkdir -p "$dir"
  node_modules/.bin/protoc -I proto --plugin=node_modules/.bin/protoc-gen-ts_proto --ts_proto_out="$dir" \
    --ts_proto_opt="esModuleInterop=true,importSuffix=.js,env=node,useOptionals=none,exportCommonSymbols=false,$options" "$@"
}

generate "$out/packages/rpc/src/gen" outputServices=grpc-js,oneof=unions-value,forceLong=number \
  $(find proto -name '*.proto' ! -path '*/ctrl/*')
generate "$out/packages/channel/src/gen" \
  outputServices=none,outputJsonMethods=false,forceLong=bigint,useMapType=true,removeEnumPrefix=true,unrecognizedEnum=false \
  $(find proto/overlay/ctrl -name '*.proto')
