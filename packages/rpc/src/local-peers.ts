import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { refusalOf } from './admit.js'
import { type Context, contextFromMessage, contextToMessage } from './context.js'
import { endingOf, type OwnEnding, openEnding } from './ending.js'
import { asFault, Fault, faultFromMessage, faultToMessage, refusalMessage } from './fault.js'
import { CALL_LIMIT_MS, onAbort } from './limits.js'
import type { LocalService, LocalServices } from './local-services.js'
import { abortedBy, restMs } from './mux-client.js'
import type { PeerName } from './peer-name.js'
import type { Peers } from './peers.js'
import { MAX_PENDING } from './pending-calls.js'
import type { CalledMethod, CalledReplica } from './replica.js'

export interface LocalPeersOptions {
  readonly local: LocalServices
  readonly service: PeerName
  readonly caller: PeerName
  /** Connects to the replicas of the service at other addresses than this one. Undefined: there are none. */
  readonly connect?: (own: string) => Peers | undefined
}

/**
 * A service of this process. Its other replicas, in other processes, get only calls that name a replica. Callers,
 * deadlines and faults are those of other calls. Answers and messages of streams are encoded, so that a caller never has
 * objects that the service changes; a request is made for its call, and is passed on as it is.
 */
export function localPeers({ local, service, caller, connect }: LocalPeersOptions): Peers {
  let pending = 0
  let connected: Peers | undefined
  let isClosed = false

  /** Throws a fault where the caller may not call the method. */
  function admitted(path: string): LocalService {
    const found = local.find(service)
    if (!found) throw new Fault('UNAVAILABLE', undefined, new Error(`${service} has stopped`))
    const { host, callersOf, refused } = found.admission
    if (callersOf(host, path)?.has(caller)) return found
    refused({ reason: 'caller', method: path, caller })
    throw faultFromMessage(refusalMessage(refusalOf(caller, path)))
  }

  async function call(
    { path }: CalledMethod,
    request: unknown,
    context: Context,
    limitMs: number,
  ): Promise<Buffer> {
    const { direct, track } = admitted(path)
    const method = direct.get(path)
    if (!method) throw new Fault('UNHANDLED', undefined, new Error(`no method '${path}'`))
    if (pending >= MAX_PENDING) throw new Fault('SERVER_TOO_MANY_REQUESTS')
    const callMs = Math.min(restMs(context, limitMs), CALL_LIMIT_MS)
    const ending = openEnding(callMs)
    const ofCaller = endingOf(context)
    const listeners: (() => void)[] = []
    pending++
    try {
      // one promise for all ways in which it ends: this is on the way of every request
      return await new Promise<Buffer>((resolve, reject) => {
        listeners.push(
          ending.listen(() => reject(ending.reason())),
          ofCaller.listen(() => {
            reject(abortedBy(ofCaller))
            ending.end(new Fault('TIMEOUT'))
          }),
        )
        const answer = track(method(request, copyOf(context, callMs, ending)))
        answer.then(resolve, (err: unknown) => reject(asSent(err)))
      })
    } finally {
      pending--
      ending.forget()
      for (const remove of listeners) remove()
    }
  }

  async function* stream(path: string, request: Buffer, context: Context): AsyncGenerator<Buffer> {
    const { streams, stopping } = admitted(path)
    const run = streams.get(path)
    if (!run) throw new Fault('UNHANDLED', undefined, new Error(`no stream '${path}'`))
    const { signal } = context
    const limitMs = context.deadline ? restMs(context, 0) : Number.POSITIVE_INFINITY
    const ending = openEnding(limitMs)
    const messages = new PassThrough({ objectMode: true })
    const listeners = [
      onAbort(signal, () => ending.end(new Fault('TIMEOUT'))),
      onAbort(stopping, () => ending.end(new Fault('UNAVAILABLE'))),
    ]
    const own = copyOf(context, limitMs, ending)
    let fault: Fault | undefined
    run(request, own, (message) =>
      messages.write(message) ? undefined : once(messages, 'drain', { signal: own.signal }),
    )
      .catch((err: unknown) => {
        fault = asSent(err)
      })
      .finally(() => messages.end()) // after those that are not read yet
    try {
      for await (const message of messages) yield message as Buffer
      if (fault && !signal.aborted) throw fault
    } finally {
      for (const remove of listeners) remove()
      ending.end(new Fault('TIMEOUT')) // the caller may have left the loop
    }
  }

  const replica: CalledReplica = { address: 'this process', call, callBulk: call, stream }
  return {
    replicas() {
      const own = local.addressOf(service)
      if (own !== undefined && !isClosed) connected ??= connect?.(own)
      return [replica, ...(connected?.replicas() ?? [])]
    },
    found: () => local.awaited(service),
    next: () => replica,
    leastBusy: () => replica,
    others: async () => false,
    wasConnected: () => local.awaited(service) === undefined,
    async [Symbol.asyncDispose]() {
      isClosed = true
      await connected?.[Symbol.asyncDispose]()
    },
  }
}

/** A fault of the service arrives without its cause, which is for the log of the service. */
const asSent = (err: unknown): Fault => faultFromMessage(faultToMessage(asFault(err)))

/** As after its way over a connection. */
const copyOf = (context: Context, limitMs: number, ending: OwnEnding): Context =>
  contextFromMessage(contextToMessage(context), limitMs, ending)
