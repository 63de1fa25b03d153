import type { Duplex } from 'node:stream'
import {
  type Channel,
  contentType,
  encodeBool,
  encodeText,
  headerKey,
  type Message,
  type Outgoing,
  openChannel,
  ValidationStarted,
} from '@overlay/channel'
import { openLimit } from '@overlay/process/async'
import { Fault, ownContext } from '@overlay/rpc'
import { MAX_QUEUED_BYTES, MAX_STREAM_REQUESTS, READY_MS } from '../limits.js'
import type { EventSource } from './shared-source.js'
import {
  eventTypeOf,
  isSubscribed,
  RefusedRequest,
  type Subscriptions,
  subscriptionsOf,
} from './subscriptions.js'
import { type Validate, type ValidationKind, validationKinds } from './validations.js'

/** wire: content types and a header of the management channel. */
const STREAM_EVENTS_REQUEST = 10040
const STREAM_EVENTS_EVENT = 10041
const EVENT_TYPE = 10

export interface ManagementOptions {
  readonly events: EventSource
  /** The changes of all services. */
  readonly changes: EventSource
  /** The numbers of entities, by their names in the summary. */
  readonly countEntities: (signal: AbortSignal) => Promise<Readonly<Record<string, number>>>
  readonly validate: Validate
}

const result = (isSuccess: boolean, text: string): Outgoing => ({
  type: contentType.result,
  headers: new Map([[headerKey.resultSuccess, encodeBool(isSuccess)]]),
  body: encodeText(text),
})

/** Answers the requests of one client until its channel is closed. */
export function openManagementChannel(
  socket: Duplex,
  { events, changes, countEntities, validate }: ManagementOptions,
): Channel {
  const channel = openChannel(socket, {
    maxQueuedBytes: MAX_QUEUED_BYTES,
    maxPending: MAX_STREAM_REQUESTS,
    maxWaiting: MAX_STREAM_REQUESTS,
    heartbeatMs: Number.POSITIVE_INFINITY, // wire: clients answer only those of WebSocket
    onMessage: async (message) => {
      const kind = validationKinds.get(message.type)
      if (kind) await runValidation(message, kind)
      else channel.reply(message, await answer(message).catch(failed))
    },
  })
  const { closed } = channel
  let subscriptions: Subscriptions | undefined
  let listeningToChanges: Disposable | undefined
  let counting: NodeJS.Timeout | undefined

  async function answer({ type, body }: Message): Promise<Outgoing> {
    if (type !== STREAM_EVENTS_REQUEST) throw new RefusedRequest(`requests of type ${type} are not supported`)
    const requested = subscriptionsOf(body)
    if (!subscriptions) listen(events)
    subscriptions = requested
    const wantsChanges = requested.events.has('entityChange')
    if (wantsChanges) listeningToChanges ??= listen(changes)
    else stopChanges()
    count(requested.countsEveryMs)
    using limit = openLimit(READY_MS, closed)
    const sources = wantsChanges ? [events, changes] : [events]
    await Promise.all(sources.map((source) => source.ready(limit.signal))).catch(() => {
      throw new RefusedRequest('events are not available')
    })
    return result(true, 'success')
  }

  async function runValidation(message: Message, { answer: type, result: resultType, read }: ValidationKind) {
    const answerWith = (started: ValidationStarted): void =>
      channel.reply(message, { type, body: ValidationStarted.encode(started).finish() })
    let isStarted = false
    try {
      for await (const { count, results } of validate(read(message.body), ownContext(closed))) {
        if (!isStarted) answerWith({ success: true, message: '', count: BigInt(count) })
        isStarted = true
        for (const body of results) await channel.sendLarge(() => ({ type: resultType, parts: [body] }))
      }
    } catch (err) {
      const isRefused = err instanceof RefusedRequest || err instanceof Fault
      if (isStarted || !isRefused) throw err
      answerWith({ success: false, message: err.message, count: 0n })
    }
  }

  function listen(source: EventSource): Disposable {
    const listening = source.listen((event) => {
      if (subscriptions && isSubscribed(subscriptions, event)) send(event.namespace, event.json)
    })
    closed.addEventListener('abort', () => listening[Symbol.dispose](), { once: true })
    if (closed.aborted) listening[Symbol.dispose]()
    return listening
  }

  function stopChanges(): void {
    listeningToChanges?.[Symbol.dispose]()
    listeningToChanges = undefined
  }

  const send = (namespace: string, json: Uint8Array): void =>
    channel.send({
      type: STREAM_EVENTS_EVENT,
      headers: new Map([[EVENT_TYPE, encodeText(eventTypeOf(namespace))]]),
      body: json,
    })

  function count(everyMs: number | undefined): void {
    clearInterval(counting)
    if (everyMs === undefined || closed.aborted) return
    counting = setInterval(() => void sendCounts(), everyMs)
    void sendCounts()
  }

  async function sendCounts(): Promise<void> {
    const event = { namespace: 'edge.entityCounts', timestamp: new Date().toISOString() }
    const counted = await countEntities(closed).then(
      (counts) => ({ counts, error: '' }),
      () => ({ counts: null, error: 'the entities cannot be counted' }),
    )
    send(event.namespace, Buffer.from(JSON.stringify({ ...event, ...counted })))
  }

  closed.addEventListener('abort', () => clearInterval(counting), { once: true })
  return channel
}

/** Requests of clients are refused with a text. Other failures close the channel, and are logged with its end. */
function failed(err: unknown): Outgoing {
  if (err instanceof RefusedRequest) return result(false, err.message)
  throw err
}
