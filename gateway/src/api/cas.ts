import { X509Certificate } from 'node:crypto'
import { Fault, type Methods, type PkiServiceService, type Positions } from '@overlay/rpc'
import { derOf, encode, objectId, sequence, tag } from '@overlay/x509'
import type { GatewayCaches } from '../cache/caches.js'
import type { Services } from '../clients/services.js'
import { raw } from '../http/body.js'
import { callContext, callContextAt } from '../http/calls.js'
import { sendEmpty } from '../http/envelope.js'
import { acceptBody } from '../http/exchange.js'
import { contentTypeOf } from '../http/negotiate.js'
import { send } from '../http/send.js'
import { write } from '../http/write.js'
import { TRUST_BUNDLE_AGE_MS } from '../limits.js'
import type { Handlers } from './operations.js'

const TEXT = 'text/plain'
const JWT = 'application/jwt'

/** Special operations on certificate authorities. */
export const cas = ({ pki }: Services): Handlers => ({
  'POST /cas/{id}/verify': acceptBody(
    raw('certificate', [TEXT, 'application/json'], true),
    async (c, { id }, body) => {
      // wire: JSON is an accepted content type, but not a certificate
      if (contentTypeOf(c.env.incoming) !== TEXT) throw new Fault('COULD_NOT_PARSE_BODY')
      await pki.verifyCa({ id, certificatePem: body.toString() }, callContext(c))
      return sendEmpty(c)
    },
  ),

  'GET /cas/{id}/jwt': {
    produces: [JWT],
    handle: async (c, { id }) =>
      send(c, 200, (await pki.getCaJwt({ kind: 'cas', id }, callContext(c))).jwt, JWT),
  },
})

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
            cached = { text, untilMs: Date.now() + TRUST_BUNDLE_AGE_MS, seen: positions }
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
