import type { JsonSchema } from '@overlay/model'
import { Fault, invalid } from '@overlay/rpc'
import { DISCARDED_BYTES, MAX_DEPTH } from '../limits.js'
import type { BodySpec, RequestContext } from './exchange.js'
import { hasBody } from './negotiate.js'
import { check } from './validate.js'

export interface BodyLimits {
  readonly maxBytes: number
  readonly withinMs: number
}

/** A JSON body that the handler receives as it is. */
export const json = <B>(name: string, schema: JsonSchema, required = true): BodySpec<B> => ({
  name,
  schema,
  required,
  read: (checked) => checked as B,
})

/** A body of other content types than JSON. */
export const raw = (
  name: string,
  consumes: readonly string[],
  required = false,
  schema: JsonSchema = { type: 'string' },
): BodySpec<Buffer> => ({
  name,
  schema,
  required,
  consumes,
  read: (bytes) => bytes as Buffer,
})

/** Reads the body and checks its form. The returned function checks the rest, and builds the argument of the handler. */
export async function readBody(
  c: RequestContext,
  spec: BodySpec,
  limits: BodyLimits,
): Promise<() => unknown> {
  const bytes = hasBody(c.env.incoming) ? await readWhole(c, limits) : Buffer.alloc(0)
  const { name, schema, required, consumes, read } = spec
  if (bytes.length === 0 && required) throw invalid(name, `${name} in body is required`, '')
  if (consumes) return () => read(bytes, bytes)
  const sent = bytes.length === 0 ? undefined : parseJson(bytes)
  const { value, refusal } = check(schema, sent, bytes.length)
  return () => {
    if (refusal) throw refusal
    return read(value, sent)
  }
}

const NUL = /(^|[^\\])(\\\\)*\\u0000/

export function parseJson(bytes: Buffer): unknown {
  const text = bytes.toString()
  if (text.length > MAX_DEPTH && depthOf(text) > MAX_DEPTH)
    throw new Fault('COULD_NOT_PARSE_BODY', `nested deeper than ${MAX_DEPTH} levels`)
  if (text.includes('\\u0000') && NUL.test(text))
    throw new Fault('COULD_NOT_PARSE_BODY', 'NUL characters are not allowed')
  try {
    return JSON.parse(text)
  } catch (err) {
    if (err instanceof SyntaxError) throw new Fault('COULD_NOT_PARSE_BODY', 'the body is not valid JSON', err)
    throw err
  }
}

function depthOf(text: string): number {
  let depth = 0
  let deepest = 0
  let quoted = false
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (quoted) {
      if (code === 92) i++
      else if (code === 34) quoted = false
    } else if (code === 34) quoted = true
    else if (code === 91 || code === 123) deepest = Math.max(deepest, ++depth)
    else if (code === 93 || code === 125) depth--
  }
  return deepest
}

/** Encodes a value for a service. Half of a surrogate pair, which Postgres cannot store, becomes U+FFFD. */
export function jsonBytes(value: unknown): Buffer {
  const text = JSON.stringify(value)
  if (!text.includes('\\ud')) return Buffer.from(text)
  return Buffer.from(text.replace(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, '$1\uFFFD'))
}

/** Most bodies arrive together with their headers. They need neither listeners nor a timer. */
async function readWhole(c: RequestContext, limits: BodyLimits): Promise<Buffer> {
  const { incoming } = c.env
  const announced = Number(incoming.headers['content-length'] ?? 0)
  if (announced > DISCARDED_BYTES) throw tooLarge(c, limits.maxBytes)
  await undefined // the parser passes on the rest of what it has received
  if (incoming.complete) {
    const bytes = (incoming.read() as Buffer | null) ?? Buffer.alloc(0)
    if (bytes.length > limits.maxBytes) throw tooLarge(c, limits.maxBytes)
    return bytes
  }
  if (incoming.destroyed) throw endedEarly(c)
  return readAll(c, limits, announced)
}

function readAll(c: RequestContext, { maxBytes, withinMs }: BodyLimits, announced: number): Promise<Buffer> {
  const { incoming } = c.env
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = []
    let size = 0
    const isTooLarge = (): boolean => Math.max(announced, size) > maxBytes
    const timer = setTimeout(
      () => done(() => reject(cut(c, `the body did not arrive within ${withinMs / 1000} s`))),
      withinMs,
    )
    const onData = (chunk: Buffer): void => {
      size += chunk.length
      if (size > DISCARDED_BYTES) done(() => reject(tooLarge(c, maxBytes)))
      else if (isTooLarge()) chunks = []
      else chunks.push(chunk)
    }
    const onEnd = (): void =>
      done(() => {
        if (isTooLarge()) reject(tooLarge(c, maxBytes))
        else resolve(chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks))
      })
    const onEarlyEnd = (): void => done(() => reject(endedEarly(c)))
    function done(finish: () => void): void {
      clearTimeout(timer)
      incoming.off('data', onData).off('end', onEnd).off('error', onEarlyEnd).off('close', onEarlyEnd)
      incoming.on('error', ignore)
      finish()
    }
    incoming.on('data', onData).on('end', onEnd).on('error', onEarlyEnd).on('close', onEarlyEnd)
  })
}

const ignore = (): void => undefined

const endedEarly = (c: RequestContext): Fault => cut(c, 'the body ended early')

const tooLarge = (c: RequestContext, maxBytes: number): Fault =>
  cut(c, `the body is larger than ${maxBytes} bytes`)

/** Closes the connection after the answer: the rest of the body would be read as the next request. */
function cut({ env: { outgoing } }: RequestContext, reason: string): Fault {
  outgoing.setHeader('connection', 'close')
  return new Fault('COULD_NOT_READ_BODY', reason)
}
