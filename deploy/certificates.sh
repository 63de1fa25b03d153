#!/bin/sh
# Prints certificates for the processes as Kubernetes secrets, in the form of those of cert-manager, for clusters without
# it: sh deploy/certificates.sh | kubectl apply -n overlay -f -
# The authority is new each time and its key is not kept: when some are replaced, replace all of them. They are valid for
# 90 days; processes read the new ones without a restart, and calls between old and new ones fail until all have them.
set -eu
umask 077
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

openssl ecparam -name prime256v1 -genkey -noout -out ca.key
openssl req -x509 -new -key ca.key -days 90 -subj '/CN=Overlay processes' -out ca.crt \
  -addext keyUsage=critical,keyCertSign

encoded() { openssl base64 -A <"$1"; }

for part in gateway identity pki policy sessions; do
  openssl ecparam -name prime256v1 -genkey -noout -out tls.key
  openssl req -new -key tls.key -subj "/CN=$part" -out request.pem
  cat >extensions <<END
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
extendedKeyUsage=serverAuth,clientAuth
subjectAltName=DNS:$part
END
  openssl x509 -req -in request.pem -CA ca.crt -CAkey ca.key -CAcreateserial -days 90 -extfile extensions -out tls.crt \
    2>/dev/null
  cat <<END
apiVersion: v1
kind: Secret
metadata: { name: $part-tls }
type: kubernetes.io/tls
data:
  ca.crt: $(encoded ca.crt)
  tls.crt: $(encoded tls.crt)
  tls.key: $(encoded tls.key)
---
END
done
