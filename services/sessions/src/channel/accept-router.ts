import { setTimeout as delay } from 'node:timers/promises'
import type { TLSSocket } from 'node:tls'
import { ChannelClosed, MESSAGE_LIMITS, type ReceivedHello } from '@overlay/channel'
import { metrics } from '@overlay/process'
import { boundedQueue, type Queue } from '@overlay/process/async'
import { clientAddressOf } from '@overlay/process/tls'
import type { Logger } from 'pino'
import { refusalOf } from '../domain/hello.js'
import { showable } from '../domain/router-text.js'
import { ADMITTED_AT_ONCE, HELLO_MS, SET_UP_MS, SKIPPED_BYTES } from '../limits.js'
import type { RouterDirectory } from '../routers/router-directory.js'
import type { RouterPresence } from '../routers/router-presence.js'
import { answerOf } from './answer-hello.js'
import type { ChannelRegistry } from './channel-registry.js'
import { Refused, readHello, receiveHello, refuseIfAway, verifiedFingerprint } from './check-hello.js'
import type { Dispatch } from './dispatch.js'
import type { Concern } from './handlers.js'
import { openRefusals } from './refusals.js'
import type { RouterChannel } from './router-channel.js'
import type { RouterStatus } from './router-status.js'

export interface AcceptorDeps {
  readonly controllerId: string
  readonly directory: Pick<RouterDirectory, 'get' | 'onChange'>
  readonly presence: Pick<RouterPresence, 'isOnline' | 'onChange'>
  readonly channels: ChannelRegistry
  readonly status: Pick<RouterStatus, 'open' | 'forget'>
  readonly concerns: readonly Concern[]
  readonly dispatch: Dispatch
  readonly log: Logger
  readonly helloMs?: number
  readonly heartbeatMs?: number
}

/** Checks connections, opens their channels and closes those of routers that lose their right to one. */
export function openAcceptor(deps: AcceptorDeps) {
  const { controllerId, directory, presence, channels, status, concerns, dispatch, log } = deps
  const { helloMs = HELLO_MS, heartbeatMs } = deps
  const queue: Queue = boundedQueue({
    name: 'routers',
    running: ADMITTED_AT_ONCE,
    waiting: Number.POSITIVE_INFINITY, // connections are limited
  })
  /** The newest connection of each router that waits for its admission. */
  const admissions = new Map<string, TLSSocket>()
  const ending = new Set<Promise<void>>()
  const refusals = openRefusals(log)
  let isStopped = false

  /** Takes a connection after its TLS handshake. Never throws. */
  async function accept(socket: TLSSocket): Promise<void> {
    const sourceAddress = clientAddressOf(socket)
    let hello: ReceivedHello | undefined
    socket.on('error', () => socket.destroy())
    try {
      const fingerprint = verifiedFingerprint(socket)
      hello = await receiveHello(socket, helloMs)
      check(hello.routerId, fingerprint)
      await admit(socket, hello, fingerprint)
    } catch (err) {
      socket.destroy()
      if (err instanceof ChannelClosed) return // before it was admitted
      const facts = { sourceAddress, ...(hello && claimOf(hello)) }
      if (err instanceof Refused) refusals.note(err, facts)
      else log.error({ err, ...facts }, 'router not admitted')
    }
  }

  /** What a peer says it is, for the log. */
  const claimOf = ({ routerId, version }: ReceivedHello) => ({
    routerId: showable(routerId),
    name: directory.get(routerId)?.name,
    version: showable(version.version),
  })

  /** Throws Refused unless the router may connect now. */
  function check(routerId: string, fingerprint: string): void {
    if (isStopped) throw new Refused('stopping')
    const refusal = refusalOf(directory.get(routerId), fingerprint)
    if (refusal) throw new Refused(refusal)
    if (channels.isContested(routerId)) throw new Refused('contested')
  }

  async function admit(socket: TLSSocket, hello: ReceivedHello, fingerprint: string): Promise<void> {
    const { routerId, version } = hello
    const read = readHello(hello)
    const { features, linkListeners } = read
    const isCurrent = (): boolean => !socket.destroyed && admissions.get(routerId) === socket
    admissions.get(routerId)?.destroy()
    admissions.set(routerId, socket)
    try {
      await queue(async () => {
        if (!isCurrent()) return
        check(routerId, fingerprint)
        channels.replace(routerId) // differs: the newest connection wins at once
        const connectedAt = new Date()
        const first = { versionInfo: version, linkListeners: linkListeners.toString('base64'), features }
        await status.open({ routerId, connectedAt }, first).catch(refuseIfAway)
        if (!isCurrent()) return
        check(routerId, fingerprint) // the router may have changed meanwhile
        const channel = hello.accept(answerOf(read, controllerId), {
          ...(heartbeatMs !== undefined && { heartbeatMs }),
          onMessage: (message) => dispatch(message, router),
          onOwn: (message) => dispatch(message, router),
          limits: { ...MESSAGE_LIMITS, skippedBytes: SKIPPED_BYTES },
        })
        const router: RouterChannel = {
          routerId,
          fingerprint,
          connectedAt,
          features,
          isReconnection: read.formerConnectionId !== '',
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

  const connections = presence.onChange({
    routerChanged: (id) => presence.isOnline(id) && refusals.forget(id),
  })

  return {
    accept,
    async [Symbol.asyncDispose]() {
      isStopped = true
      changes[Symbol.dispose]()
      connections[Symbol.dispose]()
      for (const socket of admissions.values()) socket.destroy()
      channels.closeAll('stopping')
      await Promise.all(ending)
    },
  }
}

const reasons: Readonly<Record<string, string>> = {
  'the peer does not read': 'stalled',
  'no answer to heartbeats': 'unresponsive',
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
