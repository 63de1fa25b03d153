import { edgeErrorCode, type Headers, peerDataKey, routeErrorCode, routeResultHeader } from '@overlay/channel'
import { metrics } from '@overlay/process'
import { newId } from '@overlay/store/kind-store'
import { batch } from '@overlay/store/postgres'
import type { Path } from '../domain/link-graph.js'
import { dialerPeerData, hostPeerData } from '../domain/peer-data.js'
import { type CircuitPath, routePlan } from '../domain/route-plan.js'
import { AccessRefused } from '../domain/router-access.js'
import { isShowable, showable } from '../domain/router-text.js'
import { OPEN_ROUTE_MS } from '../limits.js'
import { insertCircuits, type NewCircuit } from '../store/circuit.js'
import type { ServiceInfo } from '../terminators/service-directory.js'
import type { DialTarget } from '../terminators/terminator-pool.js'
import type { CircuitDeps } from './circuit-deps.js'
import { type CircuitEvents, circuitTags, routeCauses } from './circuit-events.js'
import type { CircuitRequest, OpenedCircuit } from './circuits.js'
import { RouteFailed, sendRoute, sendUnroute } from './send-route.js'

type OpenDeps = Pick<
  CircuitDeps,
  'db' | 'controllerId' | 'messages' | 'topology' | 'linkUnknown' | 'services' | 'pool'
> & {
  readonly circuitEvents: CircuitEvents
}

/** wire: a dial fails after two terminators have failed. */
const ATTEMPTS = 2

interface Attempt {
  /** Of its circuit. */
  readonly id: string
  /** From 0. */
  readonly number: number
}

interface Selection {
  readonly target: DialTarget
  readonly stickinessToken: string
  readonly path: Path
}

/** Selects a terminator, sets up a circuit to it, and saves the circuit. */
export function openCircuitOpener(deps: OpenDeps): (request: CircuitRequest) => Promise<OpenedCircuit> {
  const { db, services, pool, messages, topology, linkUnknown, circuitEvents, controllerId } = deps
  const insert = batch((circuits: readonly NewCircuit[]) => insertCircuits(db, circuits))

  async function select(request: CircuitRequest, excluded: ReadonlySet<string>): Promise<Selection> {
    const { routerId, serviceId, instanceId, peerData } = request
    const paths = new Map<string, Path | undefined>()
    const pathTo = (to: string): Path | undefined => {
      if (!paths.has(to)) paths.set(to, topology.path(routerId, to))
      return paths.get(to)
    }
    const stickinessToken = peerData.get(peerDataKey.stickinessToken)?.toString() ?? ''
    const pathCost = (to: string) => pathTo(to)?.cost
    const selected = await pool.select({ serviceId, instanceId, stickinessToken, pathCost, excluded })
    const path = pathTo(selected.target.routerId)
    if (!path) throw new AccessRefused(edgeErrorCode.invalidTerminator, 'no path to the terminator')
    return { ...selected, path }
  }

  /** Terminators that have failed count only while there are others. */
  async function selectAgain(request: CircuitRequest, excluded: ReadonlySet<string>): Promise<Selection> {
    try {
      return await select(request, excluded)
    } catch (err) {
      if (excluded.size === 0 || !(err instanceof AccessRefused)) throw err
      return select(request, new Set())
    }
  }

  /** Sends the routes, and undoes them if one fails. Returns the headers of the answer of the last router. */
  async function route(circuit: NewCircuit, target: DialTarget, attempt: number, peerData: Headers) {
    const { id, egressAddress: address } = circuit
    const { binding, address: destination } = target
    const egress = { address, of: { binding, destination, peerData } }
    const options = { circuitId: id, attempt, timeoutMs: OPEN_ROUTE_MS, tags: circuitTags(circuit), egress }
    let hasFailed = false
    const sent = routePlan(circuit).map(async (route) => {
      const headers = await sendRoute(messages, route, options)
      if (hasFailed) sendUnroute(messages, id, [route.routerId], true)
      return headers
    })
    try {
      const answers = await Promise.all(sent)
      return answers.at(-1) ?? new Map<number, Buffer>()
    } catch (err) {
      hasFailed = true
      sendUnroute(messages, id, circuit.routerIds, true)
      throw err
    }
  }

  async function noteFailure(target: DialTarget, { routerId, code }: RouteFailed): Promise<void> {
    if (routerId !== target.routerId || code === routeErrorCode.unknownLink) return
    pool.dialFailed(target)
    const isOwn = target.binding === 'edge' || target.binding === 'tunnel'
    if (code === routeErrorCode.invalidTerminator && isOwn) await pool.deleteUnknown(target)
    else if (code === routeErrorCode.invalidTerminator || code === routeErrorCode.misconfiguredTerminator)
      await pool.markFailed(target)
  }

  async function attemptOne(
    request: CircuitRequest,
    service: ServiceInfo,
    { target, stickinessToken, path }: Selection,
    { id, number: attempt }: Attempt,
    startedMs: number,
  ): Promise<OpenedCircuit> {
    const { sessionId, identityId, serviceId, instanceId, peerData } = request
    const routed: NewCircuit = {
      ...newPath(path),
      id,
      sessionId,
      identityId,
      serviceId,
      instanceId,
      terminatorId: target.id,
      hostId: target.hostId,
      controllerId,
      initiatorLocalAddress: text(peerData, peerDataKey.initiatorLocalAddress),
      initiatorRemoteAddress: text(peerData, peerDataKey.initiatorRemoteAddress),
      terminatorLocalAddress: '',
      terminatorRemoteAddress: '',
    }
    let headers: Headers
    try {
      headers = await route(routed, target, attempt, dialerPeerData(peerData, identityId))
    } catch (err) {
      if (!(err instanceof RouteFailed)) throw err
      const cause = err.code === undefined ? 'ROUTER_RESPONSE_TIMEOUT' : routeCauses[err.code]
      circuitEvents.failed(routed, performance.now() - startedMs, cause ?? 'ROUTER_ERR_GENERIC', path.cost)
      await noteFailure(target, err)
      throw err
    }
    const circuit: NewCircuit = {
      ...routed,
      terminatorLocalAddress: text(headers, routeResultHeader.terminatorLocalAddress),
      terminatorRemoteAddress: text(headers, routeResultHeader.terminatorRemoteAddress),
    }
    const forClient = new Map([...target.peerData, ...hostPeerData(headers)])
    if (stickinessToken) forClient.set(peerDataKey.stickinessToken, Buffer.from(stickinessToken))
    try {
      if (service.encryptionRequired && !forClient.has(peerDataKey.publicKey))
        throw new AccessRefused(edgeErrorCode.encryptionDataMissing, 'the host has sent no public key', id)
      if (!(await insert(circuit)))
        throw new AccessRefused(edgeErrorCode.invalidSession, 'the session has ended', id)
    } catch (err) {
      sendUnroute(messages, circuit.id, circuit.routerIds, true)
      throw err
    }
    pool.dialSucceeded(target)
    pool.circuitOpened(target.id)
    circuitEvents.created(circuit, performance.now() - startedMs, path.cost)
    return {
      id: circuit.id,
      address: circuit.ingressAddress,
      peerData: forClient,
      tags: circuitTags(circuit),
    }
  }

  async function open(request: CircuitRequest, startedMs: number): Promise<OpenedCircuit> {
    if (!isShowable(request.instanceId))
      throw new AccessRefused(edgeErrorCode.invalidTerminator, 'invalid instance id')
    const service = await services.find(request.serviceId)
    if (!service) throw new AccessRefused(edgeErrorCode.invalidService, 'the service does not exist')
    if (service.encryptionRequired && !request.peerData.has(peerDataKey.publicKey))
      throw new AccessRefused(edgeErrorCode.encryptionDataMissing, 'the client has sent no public key')
    const excluded = new Set<string>()
    let failure: RouteFailed | undefined
    let id: string | undefined
    for (let number = 0; number < ATTEMPTS; number++) {
      let selection: Selection
      try {
        selection = await selectAgain(request, excluded)
      } catch (err) {
        if (failure && err instanceof AccessRefused) break
        circuitEvents.failed({ ...request, id: '' }, performance.now() - startedMs, 'NO_TERMINATORS')
        throw err
      }
      id = newId('short') // a delayed answer to the previous attempt must not concern this one
      try {
        return await attemptOne(request, service, selection, { id, number }, startedMs)
      } catch (err) {
        if (!(err instanceof RouteFailed)) throw err
        failure = err
        if (err.unknownLinkId !== undefined) await linkUnknown(err.routerId, err.unknownLinkId)
        else excluded.add(selection.target.id)
      }
    }
    throw new AccessRefused(edgeErrorCode.internal, failure?.message ?? 'no router has answered', id)
  }

  return async (request) => {
    const startedMs = performance.now()
    const observe = (outcome: string): void =>
      metrics.circuitOpen.observe({ outcome }, (performance.now() - startedMs) / 1000)
    try {
      const opened = await open(request, startedMs)
      observe('ok')
      return opened
    } catch (err) {
      observe(err instanceof AccessRefused ? 'refused' : 'failed')
      throw err
    }
  }
}

const newPath = ({ routerIds, linkIds }: Path): CircuitPath => ({
  routerIds,
  linkIds,
  ingressAddress: newId('short'),
  egressAddress: newId('short'),
})

const text = (values: Headers, key: number): string => showable(values.get(key)?.toString() ?? '')
