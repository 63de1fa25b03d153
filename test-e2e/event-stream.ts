import { once } from 'node:events'
import { contentType, decodeBool, headerKey, openChannel } from '@overlay/channel'
import { createWebSocketStream, WebSocket } from 'ws'
import { until } from './traffic.js'

export type StreamedEvent = Readonly<Record<string, unknown>>

/** What `ziti fabric stream events` receives. */
export interface EventStream extends Disposable {
  readonly events: readonly StreamedEvent[]
  /** The first event with these members, as soon as it has arrived. */
  event(members: StreamedEvent): Promise<StreamedEvent>
  /** Resolves to the code with which the gateway has closed the stream. */
  readonly closed: Promise<number>
}

const STREAM_EVENTS_REQUEST = 10040
const TIMEOUT_MS = 10_000

/** Subscribes to events of the namespaces. */
export async function streamEvents(
  { address, caPem, token }: { readonly address: string; readonly caPem: string; readonly token: string },
  namespaces: readonly string[],
): Promise<EventStream> {
  const ws = new WebSocket(`wss://${address}/fabric/v1/ws-api`, {
    ca: caPem,
    headers: { 'zt-session': token },
  })
  const closed = once(ws, 'close').then(([code]) => Number(code))
  await once(ws, 'open')
  const events: StreamedEvent[] = []
  const channel = openChannel(createWebSocketStream(ws), {
    heartbeatMs: Number.POSITIVE_INFINITY,
    onMessage({ body }) {
      events.push(JSON.parse(body.toString()))
    },
  })
  const request = { format: 'json', subscriptions: namespaces.map((type) => ({ type })) }
  const body = Buffer.from(JSON.stringify(request))
  const answer = await channel.request({ type: STREAM_EVENTS_REQUEST, body }, TIMEOUT_MS)
  const success = answer.headers.get(headerKey.resultSuccess)
  if (answer.type !== contentType.result || !success || !decodeBool(success))
    throw new Error(`stream refused: ${answer.body}`)
  return {
    events,
    closed,
    event(members) {
      const isMeant = (event: StreamedEvent): boolean =>
        Object.entries(members).every(([name, value]) => event[name] === value)
      return until(() => events.find(isMeant))
    },
    [Symbol.dispose]: () => ws.terminate(),
  }
}
