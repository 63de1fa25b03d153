import type { OutgoingHttpHeaders } from 'node:http'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { createGzip, gzip } from 'node:zlib'
import { ownBytes } from '@overlay/process/bytes'
import { MIN_COMPRESSED_BYTES, PIECE_BYTES } from '../limits.js'
import type { Answer, RequestContext } from './exchange.js'
import { CREDENTIAL_HEADERS } from './session.js'
import { addHeader, SENT, write, writeHead } from './write.js'

// wire: content-type is exactly this, without a charset
export const JSON_TYPE = 'application/json'

export const JSON_HEADERS = { 'content-type': JSON_TYPE }
const GZIP = { 'content-encoding': 'gzip' }

/** What decides about the form and the contents of an answer. */
const varying = ({ env }: RequestContext): string =>
  env.reportedSession ? `accept-encoding, ${CREDENTIAL_HEADERS}` : 'accept-encoding'

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

/** The same without examining the contents: whether it may be stored has been decided. */
export function sendBytes(
  c: RequestContext,
  status: number,
  body: string | Uint8Array,
  type: string,
): Answer {
  const headers = { 'content-type': type }
  if (body.length < MIN_COMPRESSED_BYTES) return write(c, status, headers, body)
  if (!acceptsGzip(c)) return respond(c, status, headers, body, varying(c))
  return compress(body, { level: 1 }).then((bytes) =>
    respond(c, status, { ...headers, ...GZIP }, bytes, varying(c)),
  )
}

/** Streams parts, compressed for clients that accept it. */
export function sendParts(c: RequestContext, type: string, parts: () => AsyncGenerator<Buffer>): Response {
  const headers = { 'content-type': type }
  if (!acceptsGzip(c)) return stream(c, 200, headers, varying(c), parts)
  return stream(c, 200, { ...headers, ...GZIP }, varying(c), parts, createGzip({ level: 1 }))
}

/** A body that is sent repeatedly: kept as bytes, compressed at most once. */
export interface PreparedBody {
  readonly bytes: Buffer
  readonly type: string
  readonly containsSecret: boolean
  /** The compressed form; 'never' for types that are compressed already. */
  gzip: Promise<Buffer> | Buffer | undefined | 'never'
}

export function prepareBody(body: string | Buffer, type: string = JSON_TYPE): PreparedBody {
  const bytes = ownBytes(typeof body === 'string' ? Buffer.from(body) : body)
  return { bytes, type, containsSecret: containsSecret(body, type), gzip: undefined }
}

export function sendPrepared(c: RequestContext, body: PreparedBody): Answer {
  if (body.containsSecret) forbidStoring(c)
  const { bytes, type } = body
  const headers = { 'content-type': type }
  if (bytes.length < MIN_COMPRESSED_BYTES) return write(c, 200, headers, bytes)
  if (body.gzip === 'never') return respond(c, 200, headers, bytes)
  if (!acceptsGzip(c)) return respond(c, 200, headers, bytes, varying(c))
  const gzipHeaders = { ...headers, ...GZIP }
  if (Buffer.isBuffer(body.gzip)) return respond(c, 200, gzipHeaders, body.gzip, varying(c))
  body.gzip ??= compress(bytes).then((compressed) => {
    const own = ownBytes(compressed)
    body.gzip = own
    return own
  })
  return body.gzip.then((compressed) => respond(c, 200, gzipHeaders, compressed, varying(c)))
}

/** differs: no cache may keep an answer that contains a secret. */
export const forbidStoring = (c: RequestContext): void => addHeader(c, 'cache-control', 'no-store')

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

/** Cuts larger bodies: written at once, all that the client has not read yet would stay in memory. */
function respond(
  c: RequestContext,
  status: number,
  headers: OutgoingHttpHeaders,
  body: string | Uint8Array,
  vary?: string,
): Response {
  if (body.length < PIECE_BYTES) return write(c, status, headers, body, vary)
  const bytes = typeof body === 'string' ? Buffer.from(body) : body
  return stream(c, status, { ...headers, 'content-length': bytes.length }, vary, function* () {
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES)
  })
}

/** Sends the parts no faster than the client reads them. */
function stream(
  c: RequestContext,
  status: number,
  headers: OutgoingHttpHeaders,
  vary: string | undefined,
  parts: () => Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
  through?: ReturnType<typeof createGzip>,
): Response {
  if (!writeHead(c, status, headers, vary)) return SENT
  const { outgoing } = c.env
  const sent = through ? pipeline(parts, through, outgoing) : pipeline(parts, outgoing)
  sent.catch((err: Error) => {
    // The status has been sent. A connection cut short shows the client that the response is incomplete.
    c.env.error = err
    outgoing.destroy()
  })
  return SENT
}
