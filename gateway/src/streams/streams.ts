import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { boundedLines, metrics } from '@overlay/process'
import { clientAddressOf } from '@overlay/process/tls'
import { Fault, faults, sourceOf } from '@overlay/rpc'
import { createWebSocketStream, type WebSocket, WebSocketServer } from 'ws'
import { endWith } from '../http/connection.js'
import { requestId } from '../http/ids.js'
import { type Credentials, credentialsOf, type Session, type SessionStore } from '../http/session.js'
import { CLOSE_MS, PING_MS, STREAM_MESSAGE_BYTES } from '../limits.js'
import { type ManagementOptions, openManagementChannel } from './management-channel.js'

export interface StreamsOptions extends ManagementOptions {
  /** Path of the streams. Requests for others are refused. */
  readonly path: string
  readonly pathOf: (target: string) => string
  readonly sessions: Pick<SessionStore, 'find'>
  readonly log: StreamLog
  readonly maxStreams?: number
  readonly maxStreamsPerSource?: number
}

export interface StreamLog {
  info(facts: object, message: string): void
  warn(facts: object, message: string): void
}

/** WebSocket connections of administrators that receive events. */
export interface Streams extends AsyncDisposable {
  upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Something in `tag` has changed (`api-sessions <id>`, `identities <id>`), or anything: streams check their session. */
  recheck(tag?: string): void
}

interface Stream {
  readonly session: Session
  check(): Promise<void>
  close(code: number, reason: string): void
}

/** WebSocket close codes. */
const GOING_AWAY = 1001
const POLICY_VIOLATION = 1008

export function openStreams(options: StreamsOptions): Streams {
  const { path, pathOf, sessions, log, maxStreams = 100, maxStreamsPerSource = 10 } = options
  const server = new WebSocketServer({
    noServer: true,
    maxPayload: STREAM_MESSAGE_BYTES,
    perMessageDeflate: false,
  })
  const refused = boundedLines(log, 'stream refused')
  const streams = new Set<Stream>()
  const openBySource = new Map<string, number>()
  let total = 0
  let isClosing = false

  /** Takes a slot within the limits, until the socket is closed. */
  function takeSlot(source: string, socket: Duplex): void {
    const taken = openBySource.get(source) ?? 0
    if (isClosing || total >= maxStreams || taken >= maxStreamsPerSource)
      throw new Fault('SERVER_TOO_MANY_REQUESTS', 'too many streams are open')
    total++
    openBySource.set(source, taken + 1)
    socket.once('close', () => {
      total--
      const left = (openBySource.get(source) ?? 0) - 1
      if (left > 0) openBySource.set(source, left)
      else openBySource.delete(source)
    })
  }

  async function admit(incoming: IncomingMessage): Promise<Session> {
    const session = await sessions.find(credentialsOf(incoming))
    if (pathOf(incoming.url ?? '') !== path) throw new Fault('NOT_FOUND', 'no stream at this path')
    refuseOthers(session)
    return session
  }

  async function open(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const address = clientAddressOf(incoming.socket)
    const session = await admit(incoming)
    if (socket.destroyed) return
    takeSlot(sourceOf(address), socket) // only administrators take one
    server.handleUpgrade(incoming, socket, head, (ws) => run(ws, session, credentialsOf(incoming), address))
  }

  function run(ws: WebSocket, session: Session, credentials: Credentials, sourceAddress: string): void {
    const facts = { apiSessionId: session.id, identityId: session.identityId, sourceAddress }
    let reason: string | undefined
    let isAnswering = true

    const close = (code: number, text: string): void => {
      reason ??= text
      ws.close(code, text)
      setTimeout(() => ws.terminate(), CLOSE_MS).unref()
    }
    /** The session may have ended, or its identity may be no admin any more. */
    async function check(): Promise<void> {
      try {
        refuseOthers(await sessions.find(credentials))
      } catch (err) {
        if (err instanceof Fault && err.code === 'UNAUTHORIZED')
          close(POLICY_VIOLATION, 'the session has ended')
        else log.warn({ ...facts, err }, 'session of a stream not checked')
      }
    }
    const stream: Stream = { session, check, close }
    const pinging = setInterval(() => {
      if (!isAnswering) {
        reason ??= 'no answer to a ping'
        ws.terminate()
        return
      }
      isAnswering = false
      ws.ping()
      void check()
    }, PING_MS)
    ws.on('pong', () => {
      isAnswering = true
    })

    streams.add(stream)
    metrics.streams.inc()
    log.info(facts, 'stream opened')
    const channel = openManagementChannel(createWebSocketStream(ws), options)
    channel.closed.addEventListener('abort', () => {
      clearInterval(pinging)
      streams.delete(stream)
      metrics.streams.dec()
      log.info({ ...facts, reason: reason ?? (channel.closed.reason as Error).message }, 'stream closed')
    })
    if (isClosing) close(GOING_AWAY, 'the gateway stops')
    else void check() // what has changed during the upgrade
  }

  return {
    upgrade(incoming, socket, head) {
      socket.on('error', () => socket.destroy())
      open(incoming, socket, head).catch((err: unknown) => {
        const fault = err instanceof Fault ? err : new Fault('UNHANDLED')
        if (fault !== err) log.warn({ err }, 'stream not opened')
        const [status] = faults[fault.code]
        const id = requestId()
        const sourceAddress = clientAddressOf(incoming.socket)
        refused(sourceOf(sourceAddress), { status, code: fault.code, requestId: id, sourceAddress })
        endWith(socket, status, fault, id)
      })
    },
    recheck(tag) {
      for (const { session, check } of streams)
        if ([undefined, `api-sessions ${session.id}`, `identities ${session.identityId}`].includes(tag))
          void check()
    },
    async [Symbol.asyncDispose]() {
      isClosing = true
      for (const stream of streams) stream.close(GOING_AWAY, 'the gateway stops')
      server.close()
    },
  }
}

/** As for an operation of level admin. */
function refuseOthers({ isAdmin, isPartial }: Session): void {
  if (!isAdmin || isPartial) throw new Fault('UNAUTHORIZED')
}
