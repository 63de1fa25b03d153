import { setTimeout as delay } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import {
  acceptHello,
  ChannelClosed,
  capability,
  encodeText,
  encodeVersion,
  type Headers,
  HelloFailed,
  headerKey,
  type ReceivedHello,
} from '@overlay/channel'
import { boundedQueue, type Queue } from '@overlay/platform/async'
import { isAway } from '@overlay/platform/postgres'
import { metrics } from '@overlay/platform/process'
import { clientAddressOf } from '@overlay/platform/tls'
import { fingerprintOf } from '@overlay/x509'
import type { Logger } from 'pino'
import { newConnectionId, shownControllerId } from '../domain/connection-id.js'
import { type HelloRefusal, refusalOf } from '../domain/hello.js'
import type { Dispatch } from './dispatch.js'
import type { Concern } from './handlers.js'
import type { RouterChannel } from './router-channel.js'
import type { ChannelRegistry } from './router-channels.js'
import type { RouterDirectory } from './router-directory.js'
import type { RouterStatus } from './router-status.js'

export interface AcceptorDeps {
  readonly controllerId: string
  readonly directory: Pick<RouterDirectory, 'get' | 'onChange'>
  readonly channels: ChannelRegistry
  readonly status: Pick<RouterStatus, 'open' | 'forget'>
  readonly concerns: readonly Concern[]
  readonly dispatch: Dispatch
  readonly log: Logger
  readonly helloMs?: number
  readonly heartbeatMs?: number
}

export interface Acceptor extends AsyncDisposable {
  /** Takes a connection after its TLS handshake. Never throws. */
  accept(socket: TLSSocket): Promise<void>
}

const HELLO_MS = 10_000
/** Routers that are admitted at a time. The others wait: after a restart all come at once. */
const ADMITTED_AT_ONCE = 32
const SET_UP_MS = 2000
const MAX_ID_LENGTH = 64

/** A connection that gets no channel. */
class Refused extends Error {
  override readonly name = 'Refused'
  constructor(
    readonly reason: HelloRefusal,
    detail: string = reason,
  ) {
    super(detail)
  }
}

/** Checks connections, opens their channels and closes those of routers that lose their right to one. */
export function openAcceptor(deps: AcceptorDeps): Acceptor {
  const { controllerId, directory, channels, status, concerns, dispatch, log } = deps
  const { helloMs = HELLO_MS, heartbeatMs } = deps
  const queue: Queue = boundedQueue({
    name: 'routers',
    running: ADMITTED_AT_ONCE,
    waiting: Number.POSITIVE_INFINITY, // connections are limited
  })
  /** The newest connection of each router that waits for its admission. */
  const admissions = new Map<string, TLSSocket>()
  const ending = new Set<Promise<void>>()
  let isStopped = false

  async function accept(socket: TLSSocket): Promise<void> {
    const facts = { sourceAddress: clientAddressOf(socket) }
    socket.on('error', () => socket.destroy())
    try {
      const fingerprint = verifiedFingerprint(socket)
      const hello = await receiveHello(socket, helloMs)
      Object.assign(facts, { routerId: hello.routerId })
      check(hello.routerId, fingerprint)
      await admit(socket, hello, fingerprint)
    } catch (err) {
      socket.destroy()
      if (err instanceof ChannelClosed) return // before it was admitted
      if (!(err instanceof Refused)) {
        log.error({ err, ...facts }, 'router not admitted')
        return
      }
      const { reason, message } = err
      metrics.routersRefused.inc({ reason })
      log.warn({ ...facts, reason, detail: message }, 'connection of a router refused')
    }
  }

  /** Throws Refused unless the router may connect now. */
  function check(routerId: string, fingerprint: string): void {
    if (isStopped) throw new Refused('stopping')
    const refusal = refusalOf(directory.get(routerId), fingerprint)
    if (refusal) throw new Refused(refusal)
    if (channels.isContested(routerId)) throw new Refused('contested')
  }

  async function admit(socket: TLSSocket, hello: ReceivedHello, fingerprint: string): Promise<void> {
    const { routerId, version } = hello
    const linkListeners = hello.headers.get(headerKey.listeners) ?? Buffer.alloc(0)
    const isCurrent = (): boolean => !socket.destroyed && admissions.get(routerId) === socket
    admissions.get(routerId)?.destroy()
    admissions.set(routerId, socket)
    try {
      await queue(async () => {
        if (!isCurrent()) return
        check(routerId, fingerprint)
        channels.replace(routerId) // differs: the newest connection wins at once
        const connectedAt = new Date()
        const first = { versionInfo: version, linkListeners: linkListeners.toString('base64') }
        await status.open({ routerId, connectedAt }, first).catch(refuseIfAway)
        if (!isCurrent()) return
        check(routerId, fingerprint) // the router may have changed meanwhile
        const former = hello.headers.get(headerKey.connectionId)?.toString() ?? ''
        const isReconnection = former !== ''
        const channel = hello.accept(answerOf(shownControllerId(former, controllerId)), {
          ...(heartbeatMs !== undefined && { heartbeatMs }),
          onMessage: (message) => dispatch(message, router),
        })
        const router: RouterChannel = {
          routerId,
          fingerprint,
          connectedAt,
          isReconnection,
          linkListeners,
          channel,
        }
        channel.closed.throwIfAborted()
        channels.add(router)
        channel.closed.addEventListener('abort', () => track(disconnect(router)), { once: true })
        const sourceAddress = clientAddressOf(socket)
        log.info({ routerId, sourceAddress, version: version.version }, 'router connected')
        const setUp = connect(router)
        await Promise.race([setUp, delay(SET_UP_MS, undefined, { ref: false })]) // a slow one leaves its place
      })
    } finally {
      if (admissions.get(routerId) === socket) {
        admissions.delete(routerId)
        if (!channels.get(routerId)) status.forget(routerId)
      }
    }
  }

  async function connect(router: RouterChannel): Promise<void> {
    try {
      await Promise.all(concerns.map(async (concern) => concern.connected?.(router)))
    } catch (err) {
      const { routerId } = router
      log.error({ err, routerId }, 'router connected, but not set up; it has to connect again')
      router.channel.close('not set up')
    }
  }

  async function disconnect(router: RouterChannel): Promise<void> {
    const { routerId, channel } = router
    channels.remove(router)
    if (!admissions.has(routerId)) status.forget(routerId)
    const closed: ChannelClosed = channel.closed.reason
    const reason = disconnectReason(closed)
    metrics.routersDisconnected.inc({ reason })
    log.info(
      { routerId, reason, detail: closed.message, ...(reason === 'malformed' && { err: closed.cause }) },
      'router disconnected',
    )
    for (const { disconnected } of concerns)
      try {
        await disconnected?.(router)
      } catch (err) {
        log.error({ err, routerId }, 'end of the connection of a router not handled')
      }
  }

  function track(work: Promise<void>): void {
    ending.add(work)
    void work.finally(() => ending.delete(work))
  }

  const changes = directory.onChange((id, router) => {
    const connected = channels.get(id)
    if (!connected) return
    const refusal = refusalOf(router, connected.fingerprint)
    // differs: a new enrollment ends the connection, too; a router that extends its certificate stays connected
    if (refusal && refusal !== 'wrong-certificate') connected.channel.close(refusal)
  })

  return {
    accept,
    async [Symbol.asyncDispose]() {
      isStopped = true
      changes[Symbol.dispose]()
      for (const socket of admissions.values()) socket.destroy()
      channels.closeAll('stopping')
      await Promise.all(ending)
    },
  }
}

/** Throws Refused unless the network has issued the certificate of the peer, and it is valid. */
function verifiedFingerprint(socket: TLSSocket): string {
  const leaf = socket.getPeerX509Certificate()
  if (!leaf) throw new Refused('no-certificate')
  if (!socket.authorized) throw new Refused('untrusted', String(socket.authorizationError))
  return fingerprintOf(leaf)
}

function refuseIfAway(err: unknown): never {
  throw isAway(err) ? new Refused('unavailable', String(err)) : err
}

async function receiveHello(socket: TLSSocket, withinMs: number): Promise<ReceivedHello> {
  const hello = await acceptHello(socket, withinMs).catch((err: Error) => {
    throw new Refused(err instanceof HelloFailed ? 'no-hello' : 'malformed', err.message)
  })
  if (hello.headers.has(headerKey.type)) throw new Refused('not-a-router')
  if (hello.routerId.length > MAX_ID_LENGTH) throw new Refused('malformed', 'the id is too long')
  return hello
}

const { createTerminatorV2, singleRouterLinkSource, createCircuitV2 } = capability
const capabilities = (1 << createTerminatorV2) | (1 << singleRouterLinkSource) | (1 << createCircuitV2)
const version = encodeVersion({ version: 'v1.1.13', revision: '', buildDate: '', os: '', arch: '' })

const answerOf = (controllerId: string): Headers =>
  new Map([
    [headerKey.connectionId, encodeText(newConnectionId(controllerId))],
    [headerKey.version, version],
    [headerKey.id, encodeText(controllerId)],
    [headerKey.capabilities, Buffer.of(capabilities)],
  ])

const reasons: Readonly<Record<string, string>> = {
  'the peer does not read': 'stalled',
  'no answer to heartbeats': 'silent',
  replaced: 'replaced',
  stopping: 'stopping',
  disabled: 'revoked',
  'unknown-router': 'revoked',
  'not-enrolled': 'revoked',
}

/** Bounded, for a metric. */
function disconnectReason({ message, cause }: ChannelClosed): string {
  const isMalformed = cause instanceof Error && !('code' in cause) // errors of the system have a code
  return isMalformed ? 'malformed' : (reasons[message] ?? 'closed')
}
