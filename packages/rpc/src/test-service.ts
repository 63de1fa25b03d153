import { EventEmitter, once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import pino from 'pino'
import { type Context, traceparentOf } from './context.js'
import { Fault, invalid } from './fault.js'
import { ChangeServiceService, Changes } from './gen/overlay/change/v1/change.js'
import {
  AuthorizeRequest,
  AuthorizeResponse,
  GetPolicyAdviceRequest,
  PolicyAdvice,
  PolicyServiceService,
  SubmitPostureRequest,
  SubmitPostureResponse,
} from './gen/overlay/policy/v1/policy.js'
import { host } from './host.js'
import type { Methods } from './methods.js'
import { connectPeers, type Peers } from './peers.js'
import { remote } from './remote.js'
import { type ServeOptions, serve } from './serve.js'

export const secret = 'a secret that has enough characters'

/** What the servers of a test have logged, which contexts they were called with, and that 'slow' calls run. */
export const lines: string[] = []
export const seen: Context[] = []
export const starts = new EventEmitter()

async function act(word: string, context: Context): Promise<string> {
  const { caller, signal } = context
  seen.push(context)
  if (word === 'crash') throw new TypeError('secret detail')
  if (word === 'no') throw invalid('ServiceId', 'service not found', word)
  if (word === 'posture')
    throw new Fault('INVALID_POSTURE', 'no check passed', undefined, { p1: [{ id: 'c1', isPassing: false }] })
  if (word === 'slow') {
    starts.emit('slow')
    if (!signal.aborted) await once(signal, 'abort')
    signal.throwIfAborted()
  }
  return caller.identityId
}

const { authorize, getPolicyAdvice, submitPosture } = PolicyServiceService
/** Authorize travels on the tagged stream, advice is a call of its own. To submit is no read. */
const policyPart = { authorize, getPolicyAdvice, submitPosture }
const { watch } = ChangeServiceService
export const changePart = { watch }

const policy = (name: string): Methods<typeof policyPart> => ({
  async authorize({ serviceId }, context) {
    const id = await act(serviceId, context)
    if (serviceId === 'broken') return {} as AuthorizeResponse // what no encoder takes
    return AuthorizeResponse.fromPartial({ routerIds: [id], serviceName: name })
  },
  async getPolicyAdvice({ serviceId }, context) {
    const id = await act(serviceId, context)
    if (serviceId === 'broken') return {} as PolicyAdvice
    return PolicyAdvice.fromPartial({ json: Buffer.from(JSON.stringify([id, name])) })
  },
  async submitPosture(_request, context) {
    return SubmitPostureResponse.fromPartial({ id: await act('yes', context) })
  },
})

const changes: Methods<typeof changePart> = {
  async *watch({ after }, { signal }) {
    const from = after?.number ?? 0
    for (let number = from + 1; number <= from + 1000; number++)
      yield Changes.fromPartial({ upto: { timeline: 't', number } })
    if (after === undefined) await once(signal, 'abort')
    throw new Fault('OUT_OF_RANGE')
  },
}

export type Server = Awaited<ReturnType<typeof serve>>

export const start = (port = 0, name = 'a', options: Partial<ServeOptions> = {}): Promise<Server> =>
  serve(
    `127.0.0.1:${port}`,
    { log: pino({}, { write: (line: string) => lines.push(line) }), secret, ...options },
    [host(policyPart, policy(name)), host(changePart, changes)],
  )

export const peersAt = (...ports: number[]): Peers =>
  connectPeers(ports.map((port) => `127.0.0.1:${port}`).join(), { secret })

export const context = (ms = 5000, signal = new AbortController().signal): Context => ({
  requestId: 'r1',
  traceparent: traceparentOf(undefined),
  caller: { identityId: 'alice', apiSessionId: 's', isAdmin: false, configTypes: ['all'] },
  sourceAddress: '192.0.2.7',
  deadline: new Date(Date.now() + ms),
  signal,
  positions: {},
})

/** Says a word to the service; the answer is who asked and which replica was asked. */
export type Say = (peers: Peers, word: string, context: Context) => Promise<readonly string[]>

const byUnary: Say = async (peers, serviceId, c) => {
  const request = GetPolicyAdviceRequest.fromPartial({ serviceId })
  const { json } = await remote(policyPart, peers).getPolicyAdvice(request, c)
  return JSON.parse(json.toString()) as string[]
}
export const byStream: Say = async (peers, serviceId, c) => {
  const request = AuthorizeRequest.fromPartial({ serviceId })
  const { routerIds, serviceName } = await remote(policyPart, peers).authorize(request, c)
  return [...routerIds, serviceName]
}
/** A write: it may not be executed twice. */
export const submit = (peers: Peers, c: Context) =>
  remote(policyPart, peers).submitPosture(SubmitPostureRequest.create(), c)

export const ways = [
  ['unary call', byUnary],
  ['tagged call', byStream],
] as const

/** A port on which nobody listens yet. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** Stands before a server and, while it hangs, relays nothing: connections stay open, as those of a stopped process. */
export async function hanging(
  target: number,
): Promise<AsyncDisposable & { readonly port: number; hang(): void; goOn(): void }> {
  const pairs = new Set<readonly [Socket, Socket]>()
  const proxy = createServer((inner) => {
    const outer = connect(target, '127.0.0.1')
    for (const socket of [inner, outer]) socket.on('error', () => undefined)
    pairs.add([inner, outer])
    inner.pipe(outer).pipe(inner)
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  return {
    port: (proxy.address() as AddressInfo).port,
    hang() {
      for (const [inner, outer] of pairs) {
        inner.unpipe(outer).pause()
        outer.unpipe(inner).pause()
      }
    },
    goOn() {
      for (const [inner, outer] of pairs) inner.pipe(outer).pipe(inner)
    },
    async [Symbol.asyncDispose]() {
      proxy.close()
      for (const socket of [...pairs].flat()) socket.destroy()
    },
  }
}

/** Stands before a server and breaks its connections as the death of its machine would. */
export async function breakable(target: number): Promise<{ readonly port: number; break(): void }> {
  const sockets = new Set<Socket>()
  const proxy = createServer((inner) => {
    const outer = connect(target, '127.0.0.1')
    for (const socket of [inner, outer]) sockets.add(socket.on('error', () => undefined))
    inner.pipe(outer).pipe(inner)
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  return {
    port: (proxy.address() as AddressInfo).port,
    break() {
      proxy.close()
      for (const socket of sockets) socket.resetAndDestroy()
    },
  }
}
