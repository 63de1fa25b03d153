import type { JsonSchema } from '@overlay/model'
import { createLocation, listOf, named, object, text, time } from '@overlay/model/schema'
import type { Services } from '../clients/services.js'
import { json } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { sendCreated, sendData, sendEmpty } from '../http/envelope.js'
import { acceptBody } from '../http/exchange.js'
import { send } from '../http/send.js'
import type { Handlers } from './operations.js'

const until = (name: string, title = name) =>
  json<{ readonly expiresAt: string }>(name, named(title, object({ expiresAt: time })))

const msOf = ({ expiresAt }: { readonly expiresAt: string }): number => new Date(expiresAt).getTime()

/** New tokens for enrollments and for repeated enrollment. */
export const enrollments = ({ identity, pki, sessions }: Services): Handlers => ({
  // differs: the answer names the enrollment, which has a new token
  'POST /enrollments/{id}/refresh': acceptBody(
    until('refresh', 'enrollmentRefresh'),
    async (c, { id }, body) => {
      await pki.refreshEnrollment({ id, expiresAtMs: msOf(body) }, callContext(c))
      return sendData(c, { _links: { self: { href: `./enrollments/${id}` } }, id })
    },
    { response: { data: createLocation, envelope: 'createEnvelope' } },
  ),

  'POST /authenticators/{id}/re-enroll': acceptBody(
    until('reEnroll'),
    async (c, { id }, body) => {
      const { id: enrollmentId } = await identity.reEnrollAuthenticator(
        { id, expiresAtMs: msOf(body) },
        callContext(c),
      )
      return sendCreated(c, 'enrollments', enrollmentId)
    },
    { response: { status: 201 } },
  ),

  'POST /edge-routers/{id}/re-enroll': async (c, { id }) => {
    await sessions.reEnrollEdgeRouter({ kind: 'edge-routers', id }, callContext(c))
    return sendEmpty(c)
  },
})

const challenge = json<Readonly<Record<'keyId' | 'nonce', string>>>(
  'nonce',
  named('nonceChallenge', object({ keyId: text, nonce: { type: 'string', format: 'uuid' } })),
)
const answer = named('nonceSignature', object({ algorithm: text, caPool: text, kid: text, signature: text }))

const jwk: JsonSchema = named('jwk', {
  ...object(
    { kty: text },
    { alg: text, crv: text, e: text, kid: text, n: text, use: text, x: text, y: text },
  ),
})
const jwks = named('jwks', object({ keys: listOf(jwk) }))

/** The keys that verify enrollment tokens, and the proof that this network has them. */
export const enrollmentKeys = ({ pki }: Pick<Services, 'pki'>): Handlers => ({
  'POST /enroll/challenge': acceptBody(
    challenge,
    async (c, _, request) => {
      const { algorithm, caPem, keyId, signature } = await pki.answerChallenge(request, callContext(c))
      // wire: the members are the whole body, without `data` and `meta`, here and below
      return send(c, 200, JSON.stringify({ algorithm, caPool: caPem, kid: keyId, signature }))
    },
    { response: { data: answer, bare: true } },
  ),

  'GET /enroll/jwks': {
    response: { data: jwks, bare: true },
    handle: async (c) =>
      send(c, 200, JSON.stringify({ keys: keysIn(await pki.getTokenKeys({}, callContext(c))) })),
  },
})

interface Published {
  readonly jwks: Uint8Array
  readonly keyIds: readonly string[]
  readonly sessionKeyIds: readonly string[]
}

interface Jwk {
  readonly kid: string
}

/** All keys but those of OpenID Connect and of sessions. */
function keysIn({ jwks, keyIds, sessionKeyIds }: Published): readonly Jwk[] {
  const { keys } = JSON.parse(Buffer.from(jwks).toString()) as { readonly keys: readonly Jwk[] }
  return keys.filter(({ kid }) => !keyIds.includes(kid) && !sessionKeyIds.includes(kid))
}
