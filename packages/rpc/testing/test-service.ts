import { EventEmitter, once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import pino from 'pino'
import { type Context, traceparentOf } from '../src/context.js'
import { Fault, invalid } from '../src/fault.js'
import { ChangeServiceService, Changes } from '../src/gen/overlay/change/v1/change.js'
import {
  AuthorizeRequest,
  AuthorizeResponse,
  GetPolicyAdviceRequest,
  PolicyAdvice,
  PolicyServiceService,
  SubmitPostureRequest,
  SubmitPostureResponse,
} from '../src/gen/overlay/policy/v1/policy.js'
import { host } from '../src/host.js'
import type { Methods } from '../src/methods.js'
import { connectPeers, type Peers } from '../src/peers.js'
import { remote } from '../src/remote.js'
import { type ServeOptions, serve } from '../src/serve.js'
import { testTls } from './test-certificates.js'

/** The certificates of the servers, which are policy, and of their caller. */
export const serverTls = await testTls('policy')
export const callerTls = await testTls('sessions')

/** The log lines of the servers of a test, the contexts of their calls, and an event for each 'slow' call. */
export const logLines: string[] = []
export const contexts: Context[] = []
export const starts = new EventEmitter()

async function execute(word: string, context: Context): Promise<string> {
  const { caller, signal } = context
  contexts.push(context)
  if (word === 'crash') throw new TypeError('secret detail')
  if (word === 'away') throw new Fault('UNAVAILABLE', undefined, new Error('secret detail'))
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
/** The answers of `getPolicyAdvice` are large, and `submitPosture` is not retryable. */
const policyMethods = { authorize, getPolicyAdvice, submitPosture }
const { watch } = ChangeServiceService
export const changeMethods = { watch }

const policy = (name: string): Methods<typeof policyMethods> => ({
  async authorize({ serviceId }, context) {
    const id = await execute(serviceId, context)
    if (serviceId === 'broken') return {} as AuthorizeResponse // the encoder throws
    return AuthorizeResponse.fromPartial({ routerIds: [id], serviceName: name })
  },
  async getPolicyAdvice({ serviceId }, context) {
    const id = await execute(serviceId, context)
    if (serviceId === 'broken') return {} as PolicyAdvice
    return PolicyAdvice.fromPartial({ json: Buffer.from(JSON.stringify([id, name])) })
  },
  async submitPosture(_request, context) {
    return SubmitPostureResponse.fromPartial({ id: await execute('yes', context) })
  },
})

const changes: Methods<typeof changeMethods> = {
  async *watch({ after }, { signal }) {
    const from = after?.number ?? 0
    for (let number = from + 1; number <= from + 1000; number++)
      yield Changes.fromPartial({ upto: { timeline: 't', number } })
    if (after === undefined) await once(signal, 'abort')
    throw new Fault('OUT_OF_RANGE')
  },
}

/** One caller for all methods. */
const callersOf = () => [callerTls.name]

export type Server = Awaited<ReturnType<typeof serve>>

/** @param at a port of this machine, or an address */
export const startServer = (
  at: number | string = 0,
  name = 'a',
  options: Partial<ServeOptions> = {},
): Promise<Server> =>
  serve(
    typeof at === 'string' ? at : `127.0.0.1:${at}`,
    {
      log: pino({}, { write: (line: string) => logLines.push(line) }),
      tls: serverTls,
      callersOf,
      ...options,
    },
    [host(policyMethods, policy(name)), host(changeMethods, changes)],
  )

export const peersAt = (...ports: number[]): Peers =>
  connectPeers(ports.map((port) => `127.0.0.1:${port}`).join(), { tls: callerTls, service: 'policy' })

export const context = (ms = 60_000, signal = new AbortController().signal): Context => ({
  requestId: 'r1',
  traceparent: traceparentOf(undefined),
  caller: {
    identityId: 'alice',
    identityName: 'Alice',
    apiSessionId: 's',
    isAdmin: false,
    configTypes: ['all'],
  },
  sourceAddress: '192.0.2.7',
  deadline: new Date(Date.now() + ms),
  signal,
  positions: {},
})

/** Sends a word. The answer: the identity of the caller, and the name of the replica. */
export type SendWord = (peers: Peers, word: string, context: Context) => Promise<readonly string[]>

export const sendLarge: SendWord = async (peers, serviceId, c) => {
  const request = GetPolicyAdviceRequest.fromPartial({ serviceId })
  const { json } = await remote(policyMethods, peers).getPolicyAdvice(request, c)
  return JSON.parse(json.toString()) as string[]
}
export const sendSmall: SendWord = async (peers, serviceId, c) => {
  const request = AuthorizeRequest.fromPartial({ serviceId })
  const { routerIds, serviceName } = await remote(policyMethods, peers).authorize(request, c)
  return [...routerIds, serviceName]
}
/** A write, which must not be executed twice. */
export const submit = (peers: Peers, c: Context) =>
  remote(policyMethods, peers).submitPosture(SubmitPostureRequest.create(), c)

export const kindsOfCalls = [
  ['call with a large answer', sendLarge],
  ['call', sendSmall],
] as const

/** A port on which no process listens. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** A proxy that can hang: it keeps its connections and relays nothing, like a stopped process. */
export async function hangingProxy(
  target: number,
): Promise<AsyncDisposable & { readonly port: number; accepted(): number; hang(): void; resume(): void }> {
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
    accepted: () => pairs.size,
    hang() {
      for (const [inner, outer] of pairs) {
        inner.unpipe(outer).pause()
        outer.unpipe(inner).pause()
      }
    },
    resume() {
      for (const [inner, outer] of pairs) inner.pipe(outer).pipe(inner)
    },
    async [Symbol.asyncDispose]() {
      proxy.close()
      for (const socket of [...pairs].flat()) socket.destroy()
    },
  }
}

/** A proxy that can break its connections as a crash of the machine would. */
export async function breakableProxy(target: number): Promise<{ readonly port: number; break(): void }> {
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
