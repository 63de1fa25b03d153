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
  encodeText,
  Fault,
  FaultSubject,
  headerKey,
  InspectRequest,
  InspectResponse,
  type Message,
  type Outgoing,
  PeerStateChanges,
  type RouterLink,
  RouterLinks,
  SessionRemoved,
  Unroute,
  ValidateSessionsRequest,
  VerifyRouter,
} from '@overlay/channel'
import { fingerprintOf } from '@overlay/x509'
import type { ModelState } from '../../packages/channel/testing/strict-model.js'
import { openAdmission } from './admission.js'
import { type ApiSessions, openApiSessions } from './api-sessions.js'
import { type Controller, type Controllers, openControllers } from './controllers.js'
import { type Forwarder, openForwarder } from './forwarder.js'
import type { RouterIdentity } from './identity.js'
import { dialerPeerData, type Line, versionOf } from './lines.js'
import { type Links, openLinks } from './links.js'
import { openReports } from './reports.js'
import { openRouterModel, type RouterModel } from './router-model.js'
import { takeRoute } from './routes.js'
import type { RouterParts } from './sdk-channel.js'
import { openSdkListener } from './sdk-listener.js'
import { openSessions, type Sessions } from './sessions.js'
import { openTerminators, type Terminators } from './terminators.js'
import { openTunneler, type Tunneler } from './tunneler.js'

export interface RouterOptions {
  readonly identity: RouterIdentity
  /** `host:port` of the listener of each controller. */
  readonly controllers: readonly string[]
  /** The release line of the router; 1.1 by default. */
  readonly line?: Line
  /** The data model that a former process of the router has stored. */
  readonly storedModel?: ModelState
  /** The router is an identity, which hosts and dials. */
  readonly isTunneler?: boolean
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
  /** Off in routers of the 1.1 line. */
  readonly model: RouterModel
  readonly tunneler: Tunneler | undefined
  /** Rules of the protocol that controllers have broken. Tests expect none. */
  violations(): string[]
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
  const { closeWaitMs = CLOSE_WAIT_MS, confirmMs = CONFIRM_MS, line = '1.1' } = options
  const violations: string[] = []
  const stopping = new AbortController()
  setMaxListeners(0, stopping.signal) // one for each pause before terminators are tried again
  /** Identities of the model at its last change. */
  let known: ReadonlySet<string> = new Set()
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
      if (sdk.access.apiSessionToken === token) sdk.channel.close('the API session has ended')
    }
  })
  const model = openRouterModel({
    line,
    controllers: () => controllers,
    stored: options.storedModel,
    onChange() {
      verifySdks()
      tunneler?.verify()
    },
  })
  const reports = openReports(line, () => controllers)
  const links = hasLinks ? await openLinks(linkOptions()) : undefined
  const controllers = openControllers({
    identity,
    addresses: options.controllers,
    line,
    ...(links && { linkListeners: links.listeners }),
    ...(onRefused && { onRefused }),
    onMessage(message, controller) {
      observe?.(message, controller)
      handlers[message.type]?.(message, controller)
    },
    onConnected(controller, isAgain) {
      if (links || line === '2.0')
        controller.channel.send(linksMessage(links?.dialed() ?? [], line === '2.0'))
      model.connected(controller)
      reports.connected(controller)
      if (!isAgain) return
      terminators.reconnected()
      const body = ValidateSessionsRequest.encode({ sessionTokens: sessions.keys() }).finish()
      controller.channel.send({ type: edgeType.validateSessions, body })
    },
    onDisconnected: (controller) => model.disconnected(controller),
  })
  const terminators = openTerminators(controllers, confirmMs, stopping.signal)
  const { caPem } = identity
  const admission = openAdmission({ line, caPem, apiSessions, model, controllers })
  const parts: RouterParts = {
    admission,
    controllers,
    forwarder,
    sessions,
    terminators,
    closeWaitMs,
    dialerData(identityId) {
      const name = model.contents.identity.get(identityId)?.name
      if (line !== '2.0' || !identityId) return new Map()
      return new Map([
        [dialerPeerData.identityId, encodeText(identityId)],
        ...(name ? [[dialerPeerData.identityName, encodeText(name)] as const] : []),
      ])
    },
    onCircuitEnd(circuitId, controllerId, isIngress) {
      const subject = isIngress ? FaultSubject.INGRESS : FaultSubject.EGRESS
      sendFault(controllers.get(controllerId), subject, circuitId)
    },
  }
  const tunneler = options.isTunneler ? openTunneler({ routerId: identity.id, model, parts }) : undefined
  const onClosed = reports.sdkClosed
  const sdkOptions = { identity, line, parts, onConnected: reports.sdkConnected, onClosed }
  const listener = listens ? await openSdkListener(sdkOptions) : undefined
  controllers.start()
  const heartbeats = listens ? setInterval(sendHeartbeats, HEARTBEAT_MS) : undefined

  function linkOptions() {
    return {
      routerId: identity.id,
      fingerprint: fingerprintOf(new X509Certificate(identity.client.cert)),
      forwarder,
      async verify(routerId: string, fingerprint: string): Promise<boolean> {
        const body = VerifyRouter.encode({ routerId, fingerprints: [fingerprint] }).finish()
        const reply = await controllers
          .any()
          ?.channel.request({ type: ctrlType.verifyRouter, body }, VERIFY_MS)
        const success = reply?.headers.get(headerKey.resultSuccess)
        return reply?.type === contentType.result && success !== undefined && decodeBool(success)
      },
      onDialed(link: RouterLink) {
        if (links) sendToAll(linksMessage(links.dialed(), false))
        reports.linkDialed(link)
      },
      onClosed({ id, iteration }: { readonly id: string; readonly iteration: number }) {
        for (const controller of controllers.all()) sendFault(controller, FaultSubject.LINK, id, iteration)
      },
    }
  }

  const handlers: Readonly<Record<number, (message: Message, controller: Controller) => unknown>> = {
    [edgeType.serverHello]: (message, { channel }) =>
      channel.reply(message, {
        type: edgeType.clientHello,
        headers: model.clientHelloHeaders(),
        body: encodeClientHello(line, listener?.port),
      }),
    [edgeType.apiSessionAdded]: (message, { id }) => apiSessions.added(message, id),
    [edgeType.apiSessionUpdated]: (message, { id }) => apiSessions.updated(message, id),
    [edgeType.apiSessionRemoved]: (message) => apiSessions.removed(message),
    [edgeType.sessionRemoved]: ({ body }) => sessionsRemoved(SessionRemoved.decode(body)),
    ...model.handlers,
    [edgeType.createTunnelTerminatorV2Response]: (message) => tunneler?.created(message),
    [ctrlType.route]: (message, controller) => takeRoute(message, controller, parts),
    [ctrlType.unroute]: ({ body }) => unroute(Unroute.decode(body)),
    [ctrlType.validateTerminatorsV2]: (message, controller) => terminators.validate(message, controller),
    [ctrlType.peerStateChanges]: ({ body }) => links?.peersChanged(PeerStateChanges.decode(body).changes),
    [ctrlType.fault]: ({ body }) => closeLink(Fault.decode(body)),
    [ctrlType.inspectRequest]: (message, controller) => inspect(message, controller),
  }

  function sessionsRemoved({ tokens, ids }: SessionRemoved): void {
    if (line === '2.0' && ids.length !== tokens.length)
      violations.push(`${ids.length} ids and ${tokens.length} tokens of removed sessions`)
    sessions.removed(line === '2.0' ? ids : tokens)
  }

  function verifySdks(): void {
    for (const sdk of listener?.channels() ?? []) {
      const { identityId } = sdk.access
      // identities that the router has not known yet may follow
      if (known.has(identityId) && model.contents.identity.get(identityId)?.disabled !== false)
        sdk.channel.close('identity disabled or deleted')
      sdk.verify()
    }
    known = new Set(model.contents.identity.keys())
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
    const tokens = (listener?.channels() ?? []).map(({ access }) => access.apiSessionToken)
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
    model,
    tunneler,
    violations: () => [...violations, ...model.violations, ...reports.failures],
    confirmCircuits,
    sendHeartbeats,
    async [Symbol.asyncDispose]() {
      stopping.abort()
      clearInterval(heartbeats)
      model[Symbol.dispose]()
      await links?.[Symbol.asyncDispose]()
      await controllers[Symbol.asyncDispose]()
      await listener?.[Symbol.asyncDispose]()
    },
  }
}

const linksMessage = (links: RouterLink[], fullRefresh: boolean): Outgoing => ({
  type: ctrlType.routerLinks,
  body: RouterLinks.encode({ links, fullRefresh }).finish(),
})

function encodeClientHello(line: Line, port: number | undefined): Uint8Array {
  const address = { value: `tls:localhost:${port}`, protocol: 'tls', hostname: 'localhost', port: port ?? 0 }
  return ClientHello.encode({
    version: versionOf(line).version,
    hostname: 'localhost',
    protocols: [],
    data: new Map(),
    protocolPorts: [],
    listeners: port === undefined ? [] : [{ address, advertise: address }],
  }).finish()
}
