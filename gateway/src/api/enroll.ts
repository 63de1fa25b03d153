import { type EnrollRequest, type EnrollResponse, Fault } from '@overlay/rpc'
import { detail, empty, send } from '../http/answer.js'
import type { Ask } from '../http/ask.js'
import { raw } from '../http/body.js'
import { type Answer, type Handlers, takes } from '../http/endpoint.js'
import { accepts, contentTypeOf } from '../http/negotiate.js'
import { peerCertificates } from '../http/peer.js'
import type { Services } from '../http/services.js'
import { object, text } from '../spec/schemas.js'
import { enrolledSchema } from './wire-schemas.js'

const PEM = 'application/x-pem-file'
const JSON_TYPE = 'application/json'
const members = object({}, { certCsr: text, serverCertCsr: text, username: text, password: text, name: text })
const enrollBody = raw('enroll', [JSON_TYPE, PEM, 'application/pkcs10', 'text/plain'], false, members)

/** Turning a one-time token into a certificate or a password. Real clients use this one operation for all methods. */
export const enroll = ({ pki }: Services): Handlers => ({
  'POST /enroll': takes(
    enrollBody,
    async (ask, _, body) => answerTo(ask, await pki.enroll(requestOf(ask, body), ask.context())),
    {
      produces: [JSON_TYPE, PEM],
      about: { data: enrolledSchema, envelope: 'enrollmentCertsEnvelope', fails: [401, 404, 409] },
      query: [
        { name: 'token', type: 'string', format: 'uuid', about: 'The one-time token.' },
        { name: 'method', type: 'string', about: 'Only ca matters: every token knows its own method.' },
      ],
    },
  ),
})

function requestOf(ask: Ask, body: Buffer): EnrollRequest {
  const common = {
    method: ask.query().get('method') ?? '',
    token: ask.query().get('token') ?? '',
    peerCertificates: peerCertificates(ask.incoming),
    csrPem: undefined,
    serverCsrPem: undefined,
    username: '',
    password: undefined,
    name: '',
  }
  switch (contentTypeOf(ask.incoming)) {
    case JSON_TYPE:
      return { ...common, ...membersOf(body) }
    case PEM:
    case 'text/plain':
      return { ...common, csrPem: body.toString() }
    default: // wire: also when there is neither a type nor a body
      throw new Fault('INVALID_CONTENT_TYPE')
  }
}

/** Names as routers and SDKs send them. */
function membersOf(
  body: Buffer,
): Pick<EnrollRequest, 'csrPem' | 'serverCsrPem' | 'username' | 'password' | 'name'> {
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

function answerTo(ask: Ask, { method, certPem, chainPem, serverChainPem, caPem }: EnrollResponse): Answer {
  switch (method) {
    case 'ott': // wire: the leaf as PEM, unless JSON is asked for by name
      return accepts(ask.incoming, JSON_TYPE)
        ? detail(ask, JSON.stringify({ cert: chainPem }))
        : send(ask, 200, certPem, PEM)
    case 'erott':
    case 'trott':
      return detail(ask, JSON.stringify({ ca: caPem, cert: chainPem, serverCert: serverChainPem }))
    default:
      return empty(ask)
  }
}
