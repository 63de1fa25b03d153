import { apiSessionCertificate, readSchemaOf } from '@overlay/model'
import { named, object, text } from '@overlay/model/schema'
import { Fault } from '@overlay/rpc'
import type { Services } from '../clients/services.js'
import { around, created, detail, empty } from '../http/answer.js'
import { json } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { takes } from '../http/exchange.js'
import { peerCertificates } from '../http/peer.js'
import { send } from '../http/send.js'
import type { Handlers } from './operations.js'
import { extendedSchema, sessionCertificateSchema } from './wire-schemas.js'

const { kind } = apiSessionCertificate
const longestPem = 16_384

const pem = <N extends string>(name: string, title: string, member: N, maxLength?: number) =>
  json<Readonly<Record<N, string>>>(
    name,
    named(title, object({ [member]: { ...text, ...(maxLength && { maxLength }) } })),
  )

const extension = pem('extend', 'identityExtendEnrollmentRequest', 'clientCertCsr')
const verification = pem('extend', 'identityExtendValidateEnrollmentRequest', 'clientCert', longestPem)
const certificateRequest = pem('sessionCertificate', 'currentApiSessionCertificateCreate', 'csr')

/** wire: the fault does not name a certificate that is missing or another session's. */
const withoutName = <T>(row: Promise<T>): Promise<T> =>
  row.catch((err: unknown) => {
    throw err instanceof Fault && err.code === 'NOT_FOUND' ? new Fault('NOT_FOUND', undefined, err) : err
  })

/** Certificates that callers request for themselves: to log in with, and to present to routers. */
export function ownCertificates({ identity, entitiesOf }: Services): Handlers {
  const rows = entitiesOf('identity')
  return {
    'POST /current-identity/authenticators/{id}/extend': takes(
      extension,
      async (c, { id }, { clientCertCsr }) => {
        const request = { id, csrPem: clientCertCsr, peerCertificates: peerCertificates(c.env.incoming) }
        const { certPem, caPem } = await identity.extendOwnAuthenticator(request, callContext(c))
        return detail(c, JSON.stringify({ ca: caPem, clientCert: certPem }))
      },
      { about: { data: extendedSchema, envelope: 'identityExtendEnrollmentEnvelope' } },
    ),
    'POST /current-identity/authenticators/{id}/extend-verify': takes(
      verification,
      async (c, { id }, { clientCert }) => {
        await identity.verifyOwnAuthenticator({ id, certPem: clientCert }, callContext(c))
        return empty(c)
      },
    ),
    'POST /current-api-session/certificates': takes(
      certificateRequest,
      async (c, _, { csr }) => {
        const { id, caPem, chainPem } = await identity.createSessionCertificate(
          { csrPem: csr },
          callContext(c),
        )
        return created(c, kind, id, { cas: caPem, certificate: chainPem })
      },
      {
        about: {
          status: 201,
          data: sessionCertificateSchema,
          envelope: 'createCurrentApiSessionCertificateEnvelope',
        },
      },
    ),
    'GET /current-api-session/certificates/{id}': {
      about: { data: readSchemaOf(apiSessionCertificate), meta: null },
      handle: async (c, { id }) => {
        const certificate = await withoutName(
          rows.get({ ref: { kind, id }, perspective: undefined }, callContext(c)),
        )
        return send(c, 200, around('{"data":', certificate.json, ',"meta":null}')) // wire: null here
      },
    },
    'DELETE /current-api-session/certificates/{id}': async (c, { id }) => {
      await withoutName(rows.delete({ kind, id }, callContext(c)))
      return empty(c)
    },
  }
}
