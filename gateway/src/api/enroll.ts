import { object, text } from '@overlay/model/schema'
import { EnrollRequest, type EnrollResponse, Fault } from '@overlay/rpc'
import type { Services } from '../clients/services.js'
import { raw } from '../http/body.js'
import { callContext } from '../http/calls.js'
import { peerCertificates } from '../http/connection.js'
import { sendData, sendEmpty, wrapData } from '../http/envelope.js'
import { type Answer, acceptBody, type RequestContext } from '../http/exchange.js'
import { accepts, contentTypeOf, hasBody } from '../http/negotiate.js'
import { queryOf } from '../http/query.js'
import { send } from '../http/send.js'
import type { Handlers } from './operations.js'
import { enrolledSchema } from './wire-schemas.js'

const PEM = 'application/x-pem-file'
const JSON_TYPE = 'application/json'
export const noRequest = EnrollRequest.fromPartial({})
const members = object({}, { certCsr: text, serverCertCsr: text, username: text, password: text, name: text })
const enrollBody = raw('enroll', [JSON_TYPE, PEM, 'application/pkcs10', 'text/plain'], false, members)

/** Enrolls an identity with a one-time token or a certificate of an authority. Clients use only this operation. */
export const enroll = ({ identity, pki }: Services): Handlers => ({
  'POST /enroll': acceptBody(
    enrollBody,
    async (c, _, body) => {
      const { name, ...request } = requestOf(c, body)
      // wire: other values are ignored, since every token has a method of its own
      if (queryOf(c).get('method') !== 'ca') return answerTo(c, await pki.enroll(request, callContext(c)))
      const { peerCertificates } = request
      await identity.enrollByCertificate({ name, peerCertificates }, callContext(c))
      return sendEmpty(c)
    },
    {
      produces: [JSON_TYPE, PEM],
      response: { data: enrolledSchema, envelope: 'enrollmentCertsEnvelope', fails: [401, 404, 409] },
      query: [
        {
          name: 'token',
          type: 'string',
          format: 'uuid',
          description: 'The one-time token.',
          uncheckedWith: ['method', 'ca'], // differs: the C SDK sends the id of the authority
        },
        {
          name: 'method',
          type: 'string',
          description:
            '`ca`: by a certificate of an authority, without a token. `ott`: the answer is PEM. A token knows its own method.',
        },
      ],
    },
  ),
})

/** differs: a certificate of the connection is all that these methods need, so a request without a body needs no type. */
const needsNoBody: ReadonlySet<string> = new Set(['ca', 'ottca'])

type Request = EnrollRequest & { readonly name: string }

function requestOf(c: RequestContext, body: Buffer): Request {
  const { incoming } = c.env
  const whole = (members: Partial<Request>): Request => ({
    ...noRequest,
    token: queryOf(c).get('token') ?? '',
    peerCertificates: peerCertificates(incoming),
    name: '',
    ...members,
  })
  if (!hasBody(incoming) && needsNoBody.has(queryOf(c).get('method') ?? '')) return whole({})
  switch (contentTypeOf(incoming)) {
    case JSON_TYPE:
      return whole(membersOf(body))
    case PEM:
    case 'text/plain':
      return whole({ csrPem: body.toString() })
    default: // wire: INVALID_CONTENT_TYPE also without content type and body
      throw new Fault('INVALID_CONTENT_TYPE')
  }
}

/** Members under the names that routers and SDKs send. */
function membersOf(
  body: Buffer,
): Pick<Request, 'csrPem' | 'serverCsrPem' | 'username' | 'password' | 'name'> {
  const json = body.length === 0 ? {} : parsed(body)
  return {
    csrPem: textIn(json, 'certCsr'),
    serverCsrPem: textIn(json, 'serverCertCsr'),
    username: textIn(json, 'username') ?? '',
    password: textIn(json, 'password'),
    name: textIn(json, 'name') ?? '',
  }
}

function parsed(body: Buffer): Record<string, unknown> {
  try {
    const json: unknown = JSON.parse(body.toString())
    if (json === null) return {}
    if (typeof json === 'object' && !Array.isArray(json)) return json as Record<string, unknown>
  } catch (err) {
    if (!(err instanceof SyntaxError)) throw err
  }
  throw new Fault('COULD_NOT_PARSE_BODY', 'the body is not a JSON object')
}

/** differs: a member of another type is bad input, not a crash. */
function textIn(json: Record<string, unknown>, name: string): string | undefined {
  const value = json[name] ?? undefined
  if (value !== undefined && typeof value !== 'string')
    throw new Fault('COULD_NOT_PARSE_BODY', `${name} must be a string`)
  return value
}

function answerTo(
  c: RequestContext,
  { method, certPem, chainPem, serverChainPem, caPem }: EnrollResponse,
): Answer {
  switch (method) {
    case 'ott': {
      const json = { cert: chainPem }
      if (accepts(c.env.incoming, JSON_TYPE)) return sendData(c, json)
      // wire: the leaf as PEM, unless `Accept` names JSON. Under another method in the query, JSON with the type of PEM
      const isNamed = queryOf(c).get('method') === 'ott'
      return send(c, 200, isNamed ? certPem : wrapData(json), PEM)
    }
    case 'erott':
    case 'trott':
      return sendData(c, { ca: caPem, cert: chainPem, serverCert: serverChainPem })
    default:
      return sendEmpty(c)
  }
}
