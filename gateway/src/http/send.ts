import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { createGzip, gzip } from 'node:zlib'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Answer } from './endpoint.js'
import type { RequestContext } from './request-context.js'
import { CREDENTIAL_HEADERS } from './session.js'

type BodyInit = NonNullable<ConstructorParameters<typeof Response>[0]>
type Headers = Readonly<Record<string, string>>

// wire: exactly this, without a charset
export const JSON_TYPE = 'application/json'

/** Smaller bodies are not worth compressing. */
const MIN_COMPRESSED_BYTES = 1024

const plain = { 'content-type': JSON_TYPE }

/** What decides about the form and the contents of an answer. */
const varying = (c: RequestContext) => ({
  vary: c.get('session') ? `accept-encoding, ${CREDENTIAL_HEADERS}` : 'accept-encoding',
})
const gzipped = (c: RequestContext) => ({ 'content-encoding': 'gzip', ...varying(c) })

const compress = promisify(gzip)

/** Sends a body, compressed for clients that accept it. No cache may keep one that contains a secret. */
export function send(
  c: RequestContext,
  status: number,
  body: string | Uint8Array,
  type: string = JSON_TYPE,
): Answer {
  if (containsSecret(body, type)) forbidStoring(c)
  return sendBytes(c, status, body, type)
}

/** The same without a look at the contents: whether it may be stored has been decided. */
export function sendBytes(
  c: RequestContext,
  status: number,
  body: string | Uint8Array,
  type: string,
): Answer {
  if (body.length < MIN_COMPRESSED_BYTES) return respondShort(status, body, type)
  if (!acceptsGzip(c)) return respond(c, status, body, { 'content-type': type, ...varying(c) })
  return compress(body, { level: 1 }).then((bytes) =>
    respond(c, status, bytes, { 'content-type': type, ...gzipped(c) }),
  )
}

/** Sends parts as they come, compressed for clients that accept it. */
export function sendParts(c: RequestContext, type: string, parts: () => AsyncGenerator<Buffer>): Response {
  if (!acceptsGzip(c)) return stream(c, 200, { 'content-type': type, ...varying(c) }, parts)
  return stream(c, 200, { 'content-type': type, ...gzipped(c) }, parts, createGzip({ level: 1 }))
}

/** A body that is sent repeatedly: kept as bytes, compressed at most once. */
export interface PreparedBody {
  readonly bytes: Buffer
  readonly type: string
  readonly containsSecret: boolean
  /** The compressed form; 'never' for types that are compressed already. */
  gzip: Promise<Buffer> | Buffer | undefined | 'never'
}

export const prepareBody = (body: string | Buffer, type: string = JSON_TYPE): PreparedBody => ({
  bytes: typeof body === 'string' ? Buffer.from(body) : body,
  type,
  containsSecret: containsSecret(body, type),
  gzip: undefined,
})

/** `onCompressed` receives the size of the compressed form when it is kept too. */
export function sendPrepared(
  c: RequestContext,
  body: PreparedBody,
  onCompressed?: (bytes: number) => void,
): Answer {
  if (body.containsSecret) forbidStoring(c)
  const { bytes, type } = body
  if (bytes.length < MIN_COMPRESSED_BYTES) return respondShort(200, bytes, type)
  if (body.gzip === 'never') return respond(c, 200, bytes, { 'content-type': type })
  if (!acceptsGzip(c)) return respond(c, 200, bytes, { 'content-type': type, ...varying(c) })
  const headers = { 'content-type': type, ...gzipped(c) }
  if (Buffer.isBuffer(body.gzip)) return respond(c, 200, body.gzip, headers)
  body.gzip ??= compress(bytes).then((compressed) => {
    body.gzip = compressed
    onCompressed?.(compressed.length)
    return compressed
  })
  return body.gzip.then((compressed) => respond(c, 200, compressed, headers))
}

/** differs: no cache may keep an answer that contains a secret. */
export const forbidStoring = ({ env: { outgoing } }: RequestContext): void =>
  void outgoing.setHeader('cache-control', 'no-store')

/** Ends of members that hold tokens (`token`, `jwt`), and members that hold the secrets of a second factor. */
const SECRETS = ['oken":"', 'wt":"', '"recoveryCodes":', '"provisioningUrl":']

function containsSecret(body: string | Uint8Array, type: string): boolean {
  if (type.startsWith('image/')) return true // the QR code of a second factor
  const text = typeof body === 'string' ? body : bufferOf(body)
  return SECRETS.some((member) => text.includes(member))
}

const bufferOf = (bytes: Uint8Array): Buffer => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)

function acceptsGzip({ env: { incoming } }: RequestContext): boolean {
  const accepted = incoming.headers['accept-encoding']
  return (
    typeof accepted === 'string' &&
    accepted.includes('gzip') &&
    !/gzip\s*;\s*q=0(\.0*)?\s*(,|$)/.test(accepted)
  )
}

const respondShort = (status: number, body: string | Uint8Array, type: string): Response =>
  new Response(body as BodyInit, {
    status,
    headers: type === JSON_TYPE ? plain : { 'content-type': type },
  })

const PIECE_BYTES = 16 << 10
const MIN_CUT_BYTES = 4 * PIECE_BYTES

/** Cuts larger bodies: written at once, all that the client has not read yet would stay in memory. */
function respond(c: RequestContext, status: number, body: string | Uint8Array, headers: Headers): Response {
  if (body.length < MIN_CUT_BYTES) return new Response(body as BodyInit, { status, headers })
  const bytes = typeof body === 'string' ? Buffer.from(body) : bufferOf(body)
  function* pieces(): Generator<Buffer> {
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES)
  }
  return stream(c, status, { ...headers, 'content-length': String(bytes.length) }, pieces)
}

/** Sends the parts no faster than the client reads them. */
function stream(
  c: RequestContext,
  status: number,
  headers: Headers,
  parts: () => AsyncGenerator<Buffer> | Generator<Buffer>,
  through?: ReturnType<typeof createGzip>,
): Response {
  const { outgoing } = c.env
  outgoing.writeHead(status, headers)
  const sent = through ? pipeline(parts, through, outgoing) : pipeline(parts, outgoing)
  sent.catch((err: Error) => {
    // The status has been sent. A connection cut short shows the client that the answer is incomplete.
    c.error = err
    outgoing.destroy()
  })
  return RESPONSE_ALREADY_SENT
}
