import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'

/** A span as a collector receives it. */
export interface ReceivedSpan {
  readonly service: string
  readonly traceId: string
  readonly id: string
  /** Empty: the trace begins here. */
  readonly parentId: string
  readonly name: string
  readonly kind: 'internal' | 'server' | 'client' | 'other'
  readonly attributes: Readonly<Record<string, string | number | boolean>>
  /** The ids of the spans that it is linked with. */
  readonly links: readonly string[]
  readonly isError: boolean
}

/** Receives spans by OTLP over HTTP. */
export interface TestCollector extends AsyncDisposable {
  /** For OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly url: string
  readonly spans: readonly ReceivedSpan[]
  /** Of the last request. */
  headers(): IncomingHttpHeaders
}

export async function startCollector(port = 0): Promise<TestCollector> {
  const spans: ReceivedSpan[] = []
  let headers: IncomingHttpHeaders = {}
  const server = createServer((request, response) => {
    headers = request.headers
    buffer(request).then((body) => {
      if (request.url === '/v1/traces') spans.push(...spansIn(body))
      response.writeHead(request.url === '/v1/traces' ? 200 : 404).end()
    }, response.destroy)
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    headers: () => headers,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

/** An ExportTraceServiceRequest, read by the numbers of its fields. */
const spansIn = (request: Buffer): ReceivedSpan[] =>
  messages(request, 1).flatMap((ofResource) => {
    const [resource = empty] = messages(ofResource, 1)
    const service = String(attributesIn(messages(resource, 1))['service.name'])
    return messages(ofResource, 2).flatMap((ofScope) =>
      messages(ofScope, 2).map((span) => spanIn(service, span)),
    )
  })

const kinds = ['other', 'internal', 'server', 'client'] as const

function spanIn(service: string, span: Buffer): ReceivedSpan {
  const [status = empty] = messages(span, 15)
  return {
    service,
    traceId: bytes(span, 1).toString('hex'),
    id: bytes(span, 2).toString('hex'),
    parentId: bytes(span, 4).toString('hex'),
    name: bytes(span, 5).toString(),
    kind: kinds[integer(span, 6)] ?? 'other',
    attributes: attributesIn(messages(span, 9)),
    links: messages(span, 13).map((link) => bytes(link, 2).toString('hex')),
    isError: integer(status, 3) === 2,
  }
}

const attributesIn = (pairs: readonly Buffer[]) =>
  Object.fromEntries(pairs.map((pair) => [bytes(pair, 1).toString(), valueIn(bytes(pair, 2))]))

function valueIn(value: Buffer): string | number | boolean {
  const [[number, content] = [1, empty] as const] = fieldsIn(value)
  if (typeof content === 'number') return number === 2 ? content === 1 : content
  return number === 4 ? content.readDoubleLE() : content.toString()
}

const empty = Buffer.alloc(0)

const messages = (message: Buffer, field: number): Buffer[] =>
  fieldsIn(message).flatMap(([number, value]) =>
    number === field && typeof value !== 'number' ? [value] : [],
  )
const bytes = (message: Buffer, field: number): Buffer => messages(message, field)[0] ?? empty
const integer = (message: Buffer, field: number): number =>
  Number(fieldsIn(message).find(([number]) => number === field)?.[1] ?? 0)

/** The fields of a message of protobuf: their numbers, and integers or bytes. */
function fieldsIn(message: Buffer): [number, number | Buffer][] {
  const fields: [number, number | Buffer][] = []
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = message.readUInt8(at++)
      value += (byte & 127) * scale
      if (byte < 128) return value
    }
  }
  const take = (length: number): Buffer => {
    at += length
    return message.subarray(at - length, at)
  }
  while (at < message.length) {
    const tag = varint()
    const [number, type] = [tag >>> 3, tag & 7]
    fields.push([number, type === 0 ? varint() : take(type === 1 ? 8 : type === 5 ? 4 : varint())])
  }
  return fields
}
