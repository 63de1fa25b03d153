import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import { faultOfCancelled, openCancellation } from './cancellation.js'
import { checkCaller } from './check-caller.js'
import type { Context } from './context.js'
import { contextFromMessage, contextToMessage } from './context-codec.js'
import { asFault, Fault, faultFromMessage, faultToMessage, refusalMessage } from './fault.js'
import { CALL_LIMIT_MS, MAX_PENDING_CALLS } from './limits.js'
import type { LocalService, LocalServices } from './local-services.js'
import { restMs } from './mux-client.js'
import { onAbort } from './on-abort.js'
import type { PeerName } from './peer-name.js'
import type { Peers } from './peers.js'
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
    const refusal = checkCaller(found.admission, caller, path)
    if (refusal !== undefined) throw faultFromMessage(refusalMessage(refusal))
    return found
  }

  async function call(
    { path }: CalledMethod,
    request: unknown,
    context: Context,
    limitMs: number,
  ): Promise<Buffer> {
    const { methods, track } = admitted(path)
    const method = methods.get(path)
    if (!method) throw new Fault('UNHANDLED', undefined, new Error(`no method '${path}'`))
    if (pending >= MAX_PENDING_CALLS) throw new Fault('SERVER_TOO_MANY_REQUESTS')
    const callMs = Math.min(restMs(context, limitMs), CALL_LIMIT_MS)
    const cancellation = openCancellation(callMs)
    const { signal } = cancellation
    const listeners: (() => void)[] = []
    pending++
    try {
      // one promise for all ways in which it ends: this is on the way of every request
      return await new Promise<Buffer>((resolve, reject) => {
        listeners.push(
          onAbort(signal, () => reject(signal.reason)),
          onAbort(context.signal, () => {
            reject(faultOfCancelled(context.signal))
            cancellation.cancel(new Fault('TIMEOUT'))
          }),
        )
        const answer = track(method.call(request, copyOf(context, callMs, signal)))
        answer.then(resolve, (err: unknown) => reject(asSent(err)))
      })
    } finally {
      pending--
      cancellation.forget()
      for (const remove of listeners) remove()
    }
  }

  async function* stream(path: string, request: Buffer, context: Context): AsyncGenerator<Buffer> {
    const { streams, stopping } = admitted(path)
    const run = streams.get(path)
    if (!run) throw new Fault('UNHANDLED', undefined, new Error(`no stream '${path}'`))
    const { signal } = context
    const limitMs = context.deadline ? restMs(context, 0) : Number.POSITIVE_INFINITY
    const cancellation = openCancellation(limitMs)
    const messages = new PassThrough({ objectMode: true })
    const listeners = [
      onAbort(signal, () => cancellation.cancel(new Fault('TIMEOUT'))),
      onAbort(stopping, () => cancellation.cancel(new Fault('UNAVAILABLE'))),
    ]
    const own = copyOf(context, limitMs, cancellation.signal)
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
      cancellation.cancel(new Fault('TIMEOUT')) // the caller may have left the loop
    }
  }

  const replica: CalledReplica = { address: 'this process', call, stream }
  return {
    replicas() {
      const own = local.addressOf(service)
      if (own !== undefined && !isClosed) connected ??= connect?.(own)
      return [replica, ...(connected?.replicas() ?? [])]
    },
    found: () => local.awaited(service),
    next: () => replica,
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
const copyOf = (context: Context, limitMs: number, signal: AbortSignal): Context =>
  contextFromMessage(contextToMessage(context), limitMs, signal)
