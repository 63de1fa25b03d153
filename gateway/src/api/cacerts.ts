import { X509Certificate } from 'node:crypto'
import type { Methods, PkiServiceService, Positions } from '@overlay/rpc'
import { derOf, encode, objectId, sequence, tag } from '@overlay/x509'
import type { GatewayCaches } from '../cache/caches.js'
import { callContextAt } from '../http/calls.js'
import { write } from '../http/write.js'
import type { Handlers } from './operations.js'

const FRESH_MS = 10_000
const TYPE = 'application/pkcs7-mime'
const headers = { 'content-type': TYPE, 'content-transfer-encoding': 'base64' }

/** The certificates that clients trust, in the form of EST. */
export function caCertificates(
  pki: Pick<Methods<PkiServiceService>, 'getTrustBundle'>,
  onKeys: GatewayCaches['onKeys'],
): Handlers {
  let seen: Positions = {}
  let cached: { readonly text: string; readonly untilMs: number; readonly seen: Positions } | undefined
  onKeys((positions) => {
    seen = positions
  })

  return {
    'GET /.well-known/est/cacerts': {
      produces: [TYPE],
      handle: async (c) => {
        if (!cached || cached.seen !== seen || cached.untilMs < Date.now()) {
          const positions = seen
          try {
            const { pems } = await pki.getTrustBundle({}, callContextAt(c, positions))
            const text = linesOf(certificateBag(pems))
            cached = { text, untilMs: Date.now() + FRESH_MS, seen: positions }
          } catch (err) {
            if (!cached) throw err // an older bundle is still valid
          }
        }
        return write(c, 200, headers, cached.text)
      },
    },
  }
}

/** wire: lines of 64 characters without a final line break. */
const linesOf = (der: Buffer): string => der.toString('base64').replace(/.{64}(?=.)/g, '$&\n')

const SIGNED_DATA = objectId('1.2.840.113549.1.7.2')
const DATA = objectId('1.2.840.113549.1.7.1')

/** PKCS#7 signed data without signatures: only certificates. */
export function certificateBag(pems: readonly string[]): Buffer {
  const certificates = pems.map((pem) => new X509Certificate(pem).raw)
  const signedData = sequence(
    encode(tag.integer, Buffer.of(1)),
    encode(tag.set),
    sequence(DATA),
    encode(0xa0, ...certificates),
    encode(0xa1), // revocation lists: none
    encode(tag.set),
  )
  return derOf(sequence(SIGNED_DATA, encode(0xa0, signedData)))
}
