import { X509Certificate } from 'node:crypto'
import { expect, test } from 'vitest'
import { fingerprintOf, fingerprintOfPem } from './certificate.js'

const pem = `-----BEGIN CERTIFICATE-----
MIIBbzCCARWgAwIBAgIUQaw3QO7S3UR4gwvXHcLccuSDDqEwCgYIKoZIzj0EAwIw
DDEKMAgGA1UEAwwBeDAgFw0yNjExMjIxNDU0MTJaGA8yMTI2MTAyOTE0NTQxMlow
DDEKMAgGA1UEAwwBeDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABG6/RialkUqr
i7NihNfZCgeMPNUZgbagKV2kMNPYOWFBDjffSKLcyywFMGFOVvF89XG6DMb5DXgk
gDdjmZxtQYmjUzBRMB0GA1UdDgQWBBRkJivqNudbQMPtHaox+CIDocmSVDAfBgNV
HSMEGDAWgBRkJivqNudbQMPtHaox+CIDocmSVDAPBgNVHRMBAf8EBTADAQH/MAoG
CCqGSM49BAMCA0gAMEUCIGyj2wrOAqoL8z4je85auZa/S37hqZBY5A/SgYMwE5bS
AiEAuFTPjkyUwIwc9c35pdjEGr9HlTTXRCagtwcA/W1XcTQ=
-----END CERTIFICATE-----
`

test('a fingerprint is the SHA-1 of the DER in lower-case hex, without colons', () => {
  const certificate = new X509Certificate(pem)
  const expected = certificate.fingerprint.replaceAll(':', '').toLowerCase()
  expect([fingerprintOf(certificate), fingerprintOfPem(pem)]).toEqual([expected, expected])
})
