import { createLocation, named, object } from '@overlay/model/schema'
import { Fault, type Written } from '@overlay/rpc'
import { toBuffer } from 'qrcode'
import { sessionOf } from '../cache/session.js'
import type { Sessions } from '../cache/sessions.js'
import type { Services } from '../clients/services.js'
import { json } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { sendData, sendEmpty } from '../http/envelope.js'
import { acceptBody, type RequestContext } from '../http/exchange.js'
import { send } from '../http/send.js'
import type { Handlers } from './operations.js'
import { mfaSchema, recoveryCodesSchema, totpTokenSchema } from './wire-schemas.js'

const BASE = './current-identity/mfa'
const self = { self: { href: BASE } }
const recovery = { 'recovery-codes': { href: `${BASE}/recovery-codes` } }
const whole = { 'current-identity': { href: './current-identity' } }

const word = { type: 'string', maxLength: 64 }
const required = named('mfaCode', object({ code: word }))
const code = json<{ readonly code: string }>('mfaValidation', required)
const loginCode = json<{ readonly code: string }>('mfaAuth', required)
const optionalCode = json<{ readonly code?: string } | undefined>(
  'mfaValidation',
  named('mfaCode', object({}, { code: word })),
  false,
)

/** wire: the code is in a header where the body is optional or absent. */
const codeIn = ({ env: { incoming } }: RequestContext, body?: { readonly code?: string }): string =>
  body?.code ?? incoming.headersDistinct['mfa-validation-code']?.[0] ?? ''

/** The second factor of the caller. Both APIs have these operations. */
export function mfa({ identity, oidc }: Services, sessions: Sessions): Handlers {
  /** The write may change the state of the session, which this gateway must load again. */
  const written = async <W>(c: RequestContext, write: Promise<W>): Promise<W> => {
    const result = await write
    sessions.drop(`api-sessions ${sessionOf(c).id}`)
    return result
  }
  const afterWrite = async (c: RequestContext, write: Promise<Written>): Promise<Response> => {
    await written(c, write)
    return sendEmpty(c)
  }
  const fails = [400, 404]
  return {
    'POST /authenticate/mfa': acceptBody(
      loginCode,
      (c, _, body) => afterWrite(c, identity.passMfa(body, callContext(c))),
      { response: { fails: [400, 409] } },
    ),
    'POST /current-api-session/totp-token': acceptBody(
      code,
      async (c, _, body) => {
        const { token, issuedAtMs } = await written(c, oidc.createTotpToken(body, callContext(c)))
        return sendData(c, { token, issuedAt: new Date(issuedAtMs).toISOString() })
      },
      { response: { data: totpTokenSchema, envelope: 'totpTokenEnvelope', fails: [400, 409] } },
    ),
    'GET /current-identity/mfa': {
      response: { data: mfaSchema, fails: [404] },
      handle: async (c) => {
        const { id, isVerified, provisioningUrl, recoveryCodes, ...times } = await identity.getMfa(
          {},
          callContext(c),
        )
        const links = isVerified
          ? recovery
          : { qr: { href: `${BASE}/qr-code` }, verify: { href: `${BASE}/verify` } }
        const secrets = isVerified ? { recoveryCodes: null } : { provisioningUrl, recoveryCodes }
        const data = { ...row(id, times), isVerified, ...secrets, _links: { ...self, ...whole, ...links } }
        return sendData(c, data)
      },
    },
    'POST /current-identity/mfa': {
      response: { status: 201, data: createLocation, envelope: 'createEnvelope', fails: [409] },
      handle: async (c) => {
        const { id } = await identity.startMfa({}, callContext(c))
        return sendData(c, { _links: self, id }, 201)
      },
    },
    'DELETE /current-identity/mfa': {
      response: { fails },
      handle: (c) => afterWrite(c, identity.removeMfa({ code: codeIn(c) }, callContext(c))),
    },
    'GET /current-identity/mfa/qr-code': {
      produces: ['image/png', 'application/json'],
      response: { fails: [404] },
      handle: async (c) => {
        const { isVerified, provisioningUrl } = await identity.getMfa({}, callContext(c))
        if (isVerified) throw new Fault('NOT_FOUND')
        const image = await toBuffer(provisioningUrl, { width: 256, errorCorrectionLevel: 'M' })
        return send(c, 200, image, 'image/png')
      },
    },
    'POST /current-identity/mfa/verify': acceptBody(
      code,
      (c, _, body) => afterWrite(c, identity.verifyMfa(body, callContext(c))),
      { response: { fails } },
    ),
    'GET /current-identity/mfa/recovery-codes': acceptBody(
      optionalCode,
      async (c, _, body) => {
        const { id, codes, ...times } = await identity.listRecoveryCodes(
          { code: codeIn(c, body) },
          callContext(c),
        )
        const data = { ...row(id, times), recoveryCodes: codes, _links: { ...self, ...whole, ...recovery } }
        return sendData(c, data)
      },
      { response: { data: recoveryCodesSchema, fails } },
    ),
    'POST /current-identity/mfa/recovery-codes': acceptBody(
      code,
      (c, _, body) => afterWrite(c, identity.renewRecoveryCodes(body, callContext(c))),
      { response: { fails } },
    ),
    'DELETE /identities/{id}/mfa': async (c, { id }) => {
      await identity.removeMfaOf({ kind: 'identities', id }, callContext(c))
      return sendEmpty(c)
    },
  }
}

const row = (id: string, times: { readonly createdAtMs: number; readonly updatedAtMs: number }) => ({
  createdAt: new Date(times.createdAtMs).toISOString(),
  id,
  tags: {},
  updatedAt: new Date(times.updatedAtMs).toISOString(),
})
