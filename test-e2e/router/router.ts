import { X509Certificate } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import {
  ApiSessionHeartbeat,
  CircuitConfirmation,
  ClientHello,
  contentType,
  ctrlType,
  decodeBool,
  edgeType,
  Fault,
  FaultSubject,
  headerKey,
  InspectRequest,
  InspectResponse,
  type Message,
  type Outgoing,
  PeerStateChanges,
  RouterLinks,
  SessionRemoved,
  Unroute,
  ValidateSessionsRequest,
  VerifyRouter,
} from '@overlay/channel'
import { type ApiSessions, openApiSessions } from './api-sessions.js'
import { type Controller, type Controllers, openControllers } from './controllers.js'
import { type Forwarder, openForwarder } from './forwarder.js'
import type { RouterIdentity } from './identity.js'
import { type Links, openLinks } from './links.js'
import { takeRoute } from './routes.js'
import type { RouterParts } from './sdk-channel.js'
import { fingerprintOf, openSdkListener } from './sdk-listener.js'
import { openSessions, type Sessions } from './sessions.js'
import { openTerminators, type Terminators } from './terminators.js'

export interface RouterOptions {
  readonly identity: RouterIdentity
  /** `host:port` of the listener of each controller. */
  readonly controllers: readonly string[]
  /** Listens for SDKs; true by default. */
  readonly listens?: boolean
  /** Has links to other test routers. */
  readonly hasLinks?: boolean
  /** See RouterParts; 30 s by default, as routers have it. */
  readonly closeWaitMs?: number
  /** See openTerminators; 10 s by default, as routers have it. */
  readonly confirmMs?: number
  /** Sees each message of a controller before it is handled. */
  observe?(message: Message, controller: Controller): void
  /** A connection to a controller failed or was refused. */
  onRefused?(address: string, err: unknown): void
}

/** A router for tests: it speaks the protocols of routers to controllers and SDKs, and its own to other test routers. */
export interface TestRouter extends AsyncDisposable {
  readonly id: string
  readonly identity: RouterIdentity
  /** URL for SDKs; undefined if it does not listen. */
  readonly url: string | undefined
  readonly controllers: Controllers
  readonly apiSessions: ApiSessions
  readonly sessions: Sessions
  readonly terminators: Terminators
  readonly circuits: Forwarder['circuits']
  readonly links: Links | undefined
  /** Asks the controllers of circuits whether they still exist. */
  confirmCircuits(): void
  /** Tells the controllers which API sessions are in use. */
  sendHeartbeats(): void
}

const CLOSE_WAIT_MS = 30_000
const CIRCUIT = 'circuit:'
const CONFIRM_MS = 10_000
const FORWARD_FAULT_MS = 100
const HEARTBEAT_MS = 60_000
const VERIFY_MS = 10_000

/** Starts a router that is enrolled. */
export async function startRouter(options: RouterOptions): Promise<TestRouter> {
  const { identity, listens = true, hasLinks = false, observe, onRefused } = options
  const { closeWaitMs = CLOSE_WAIT_MS, confirmMs = CONFIRM_MS } = options
  const stopping = new AbortController()
  setMaxListeners(0, stopping.signal) // one for each pause before terminators are tried again
  /** Circuits to report, by controller. */
  const forwardFaults = new Map<string, Set<string>>()

  const sendFault = (
    controller: Controller | undefined,
    subject: FaultSubject,
    id: string,
    iteration = 0,
  ): void =>
    controller?.channel.send({
      type: ctrlType.fault,
      body: Fault.encode({ subject, id, iteration }).finish(),
    })
  const sendToAll = (message: Outgoing): void => {
    for (const { channel } of controllers.all()) channel.send(message)
  }

  function reportForwardFault(circuitId: string, controllerId: string): void {
    const circuitIds = forwardFaults.get(controllerId)
    if (circuitIds) {
      circuitIds.add(circuitId)
      return
    }
    const reported = new Set([circuitId])
    forwardFaults.set(controllerId, reported)
    setTimeout(() => {
      forwardFaults.delete(controllerId)
      sendFault(controllers.get(controllerId), FaultSubject.FORWARD, [...reported].join(' '))
    }, FORWARD_FAULT_MS)
  }

  const forwarder = openForwarder({
    onInvalidLink(linkId) {
      for (const controller of controllers.all()) sendFault(controller, FaultSubject.LINK, linkId)
    },
    onForwardFault: reportForwardFault,
  })
  const sessions = openSessions()
  const apiSessions = openApiSessions((token) => {
    for (const sdk of listener?.channels() ?? []) {
      if (sdk.apiSessionToken === token) sdk.channel.close('the API session has ended')
    }
  })
  const links = hasLinks ? await openLinks(linkOptions()) : undefined
  const controllers = openControllers({
    identity,
    addresses: options.controllers,
    ...(links && { linkListeners: links.listeners }),
    ...(onRefused && { onRefused }),
    onMessage(message, controller) {
      observe?.(message, controller)
      handlers[message.type]?.(message, controller)
    },
    onConnected(controller, isAgain) {
      if (links) controller.channel.send(linksMessage(links))
      if (!isAgain) return
      terminators.reconnected()
      const body = ValidateSessionsRequest.encode({ sessionTokens: sessions.tokens() }).finish()
      controller.channel.send({ type: edgeType.validateSessions, body })
    },
  })
  const terminators = openTerminators(controllers, confirmMs, stopping.signal)
  const parts: RouterParts = {
    controllers,
    forwarder,
    sessions,
    terminators,
    closeWaitMs,
    onCircuitEnd(circuitId, controllerId, isIngress) {
      const subject = isIngress ? FaultSubject.INGRESS : FaultSubject.EGRESS
      sendFault(controllers.get(controllerId), subject, circuitId)
    },
  }
  const listener = listens ? await openSdkListener({ identity, apiSessions, parts }) : undefined
  controllers.start()
  const heartbeats = listens ? setInterval(sendHeartbeats, HEARTBEAT_MS) : undefined

  function linkOptions() {
    return {
      routerId: identity.id,
      fingerprint: fingerprintOf(new X509Certificate(identity.client.cert).raw),
      forwarder,
      async verify(routerId: string, fingerprint: string): Promise<boolean> {
        const body = VerifyRouter.encode({ routerId, fingerprints: [fingerprint] }).finish()
        const reply = await controllers
          .any()
          ?.channel.request({ type: ctrlType.verifyRouter, body }, VERIFY_MS)
        const success = reply?.headers.get(headerKey.resultSuccess)
        return reply?.type === contentType.result && success !== undefined && decodeBool(success)
      },
      onDialed() {
        if (links) sendToAll(linksMessage(links))
      },
      onClosed({ id, iteration }: { readonly id: string; readonly iteration: number }) {
        for (const controller of controllers.all()) sendFault(controller, FaultSubject.LINK, id, iteration)
      },
    }
  }

  const handlers: Readonly<Record<number, (message: Message, controller: Controller) => unknown>> = {
    [edgeType.serverHello]: (message, { channel }) =>
      channel.reply(message, { type: edgeType.clientHello, body: encodeClientHello(listener?.port) }),
    [edgeType.apiSessionAdded]: (message) => apiSessions.added(message),
    [edgeType.apiSessionUpdated]: (message) => apiSessions.updated(message),
    [edgeType.apiSessionRemoved]: (message) => apiSessions.removed(message),
    [edgeType.sessionRemoved]: ({ body }) => sessions.removed(SessionRemoved.decode(body).tokens),
    [ctrlType.route]: (message, controller) => takeRoute(message, controller, parts),
    [ctrlType.unroute]: ({ body }) => unroute(Unroute.decode(body)),
    [ctrlType.validateTerminatorsV2]: (message, controller) => terminators.validate(message, controller),
    [ctrlType.peerStateChanges]: ({ body }) => links?.peersChanged(PeerStateChanges.decode(body).changes),
    [ctrlType.fault]: ({ body }) => closeLink(Fault.decode(body)),
    [ctrlType.inspectRequest]: (message, controller) => inspect(message, controller),
  }

  function unroute({ circuitId, now }: Unroute): void {
    if (now) forwarder.unroute(circuitId)
    else setTimeout(() => forwarder.unroute(circuitId), Math.min(closeWaitMs, 1000)).unref()
  }

  function closeLink({ subject, id }: Fault): void {
    if (subject !== FaultSubject.LINK && subject !== FaultSubject.LINK_DUPLICATE) return
    links
      ?.all()
      .find((link) => link.id === id)
      ?.channel.close('a fault of the other router')
  }

  function inspect(message: Message, { channel }: Controller): void {
    const state: Record<string, () => unknown> = {
      'sdk-terminators': () => terminators.all().map(({ id, state }) => ({ id, state })),
      'router-circuits': () => forwarder.circuits(),
      links: () => (links?.all() ?? []).map(({ id, peerId, iteration }) => ({ id, dest: peerId, iteration })),
    }
    const circuit = (circuitId: string): unknown => {
      const ends = forwarder.endsOf(circuitId)
      return ends && { circuitId, xgressDetails: Object.fromEntries(ends.map((address) => [address, {}])) }
    }
    const values = InspectRequest.decode(message.body).requestedValues.flatMap((name) => {
      const value = name.startsWith(CIRCUIT) ? circuit(name.slice(CIRCUIT.length)) : state[name]?.()
      return value === undefined ? [] : [{ name, value: JSON.stringify(value) }]
    })
    const body = InspectResponse.encode({ success: true, errors: [], values }).finish()
    channel.reply(message, { type: ctrlType.inspectResponse, body })
  }

  function confirmCircuits(): void {
    for (const controller of controllers.all()) {
      const own = forwarder.circuits().filter(({ controllerId }) => controllerId === controller.id)
      const body = CircuitConfirmation.encode({
        circuitIds: own.map(({ circuitId }) => circuitId),
        idleTimes: new Map(own.map(({ circuitId, idleMs }) => [circuitId, BigInt(idleMs) * 1_000_000n])),
      }).finish()
      if (own.length > 0) controller.channel.send({ type: ctrlType.circuitConfirmation, body })
    }
  }

  function sendHeartbeats(): void {
    const tokens = (listener?.channels() ?? []).map(({ apiSessionToken }) => apiSessionToken)
    const body = ApiSessionHeartbeat.encode({ tokens: [...new Set(tokens)] }).finish()
    if (tokens.length > 0) sendToAll({ type: edgeType.apiSessionHeartbeat, body })
  }

  return {
    id: identity.id,
    identity,
    url: listener && `tls://localhost:${listener.port}`,
    controllers,
    apiSessions,
    sessions,
    terminators,
    circuits: forwarder.circuits,
    links,
    confirmCircuits,
    sendHeartbeats,
    async [Symbol.asyncDispose]() {
      stopping.abort()
      clearInterval(heartbeats)
      await links?.[Symbol.asyncDispose]()
      await controllers[Symbol.asyncDispose]()
      await listener?.[Symbol.asyncDispose]()
    },
  }
}

const linksMessage = (links: Links): Outgoing => ({
  type: ctrlType.routerLinks,
  body: RouterLinks.encode({ links: links.dialed(), fullRefresh: false }).finish(),
})

function encodeClientHello(port: number | undefined): Uint8Array {
  const address = { value: `tls:localhost:${port}`, protocol: 'tls', hostname: 'localhost', port: port ?? 0 }
  return ClientHello.encode({
    version: 'v1.1.13',
    hostname: 'localhost',
    protocols: [],
    data: new Map(),
    protocolPorts: [],
    listeners: port === undefined ? [] : [{ address, advertise: address }],
  }).finish()
}
