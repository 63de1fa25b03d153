import { apiSessionCertificate, authenticator, readSchemaOf, tagsSchema } from '@overlay/model'
import { named, object, text } from '@overlay/model/schema'
import { Fault } from '@overlay/rpc'
import type { Services } from '../clients/services.js'
import { json, jsonBytes } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { peerCertificates } from '../http/connection.js'
import { sendCreated, sendData, sendEmpty } from '../http/envelope.js'
import { acceptBody, type RequestContext } from '../http/exchange.js'
import { MAX_PEM_CHARACTERS } from '../limits.js'
import type { Handlers } from './operations.js'
import { paging, readListRequest, sendList } from './send-list.js'
import { extendedSchema, sessionCertificateSchema } from './wire-schemas.js'

const boundedText = (minLength: number, type: unknown) => ({ type, minLength, maxLength: 100 })

const credentials = (title: string, type: unknown, required: readonly string[]) =>
  json<Readonly<Record<string, unknown>>>('authenticator', {
    title,
    type: 'object',
    properties: {
      currentPassword: boundedText(5, 'string'),
      password: boundedText(5, type),
      tags: tagsSchema,
      username: boundedText(4, type),
    },
    required,
  })

const replaceBody = credentials('authenticatorUpdateWithCurrent', 'string', [
  'currentPassword',
  'password',
  'username',
])
const patchBody = credentials('authenticatorPatchWithCurrent', ['string', 'null'], ['currentPassword'])

/** Operations of callers on their own authenticators. */
export function ownAuthenticators({ identity }: Services): Handlers {
  const update = async (
    c: RequestContext,
    id: string,
    body: Readonly<Record<string, unknown>>,
    names: readonly string[],
  ): Promise<Response> => {
    const mask = names.filter((name) => name !== 'currentPassword')
    const request = { ref: { kind: 'authenticators', id }, json: jsonBytes(body), mask }
    await identity.updateOwnAuthenticator(request, callContext(c))
    return sendEmpty(c)
  }
  const response = { data: readSchemaOf(authenticator) }
  return {
    'GET /current-identity/authenticators': {
      query: paging,
      response: { ...response, page: true },
      handle: (c) =>
        sendList(c, authenticator, readListRequest(c, 'authenticators'), identity.listOwnAuthenticators),
    },
    'GET /current-identity/authenticators/{id}': {
      response,
      handle: async (c, { id }) =>
        sendData(
          c,
          (await identity.getOwnAuthenticator({ kind: 'authenticators', id }, callContext(c))).json,
        ),
    },
    'PUT /current-identity/authenticators/{id}': acceptBody(replaceBody, (c, { id }, body) =>
      update(c, id, body, ['username', 'password', 'tags']),
    ),
    'PATCH /current-identity/authenticators/{id}': acceptBody(patchBody, (c, { id }, body) =>
      update(
        c,
        id,
        body,
        Object.keys(body).filter((name) => body[name] !== null),
      ),
    ),
  }
}

const { kind } = apiSessionCertificate

const pem = <N extends string>(name: string, title: string, member: N, maxLength?: number) =>
  json<Readonly<Record<N, string>>>(
    name,
    named(title, object({ [member]: { ...text, ...(maxLength && { maxLength }) } })),
  )

const extension = pem('extend', 'identityExtendEnrollmentRequest', 'clientCertCsr')
const verification = pem(
  'extend',
  'identityExtendValidateEnrollmentRequest',
  'clientCert',
  MAX_PEM_CHARACTERS,
)
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
    'POST /current-identity/authenticators/{id}/extend': acceptBody(
      extension,
      async (c, { id }, { clientCertCsr }) => {
        const request = { id, csrPem: clientCertCsr, peerCertificates: peerCertificates(c.env.incoming) }
        const { certPem, caPem } = await identity.extendOwnAuthenticator(request, callContext(c))
        return sendData(c, { ca: caPem, clientCert: certPem })
      },
      { response: { data: extendedSchema, envelope: 'identityExtendEnrollmentEnvelope' } },
    ),
    'POST /current-identity/authenticators/{id}/extend-verify': acceptBody(
      verification,
      async (c, { id }, { clientCert }) => {
        await identity.verifyOwnAuthenticator({ id, certPem: clientCert }, callContext(c))
        return sendEmpty(c)
      },
    ),
    'POST /current-api-session/certificates': acceptBody(
      certificateRequest,
      async (c, _, { csr }) => {
        const { id, caPem, chainPem } = await identity.createSessionCertificate(
          { csrPem: csr },
          callContext(c),
        )
        return sendCreated(c, kind, id, { cas: caPem, certificate: chainPem })
      },
      {
        response: {
          status: 201,
          data: sessionCertificateSchema,
          envelope: 'createCurrentApiSessionCertificateEnvelope',
        },
      },
    ),
    'GET /current-api-session/certificates/{id}': {
      response: { data: readSchemaOf(apiSessionCertificate), meta: null },
      handle: async (c, { id }) => {
        const certificate = await withoutName(
          rows.get({ ref: { kind, id }, perspective: undefined }, callContext(c)),
        )
        return sendData(c, certificate.json, 200, 'null') // wire: `meta` is null
      },
    },
    'DELETE /current-api-session/certificates/{id}': async (c, { id }) => {
      await withoutName(rows.delete({ kind, id }, callContext(c)))
      return sendEmpty(c)
    },
  }
}
