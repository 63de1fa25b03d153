import type { FabricEvents } from '@overlay/store/change-log'
import type { CircuitPath } from '../domain/route-plan.js'
import type { NewCircuit } from '../store/circuit.js'

/** wire: the values of `failure_cause` in events of type `failed`. */
export type FailureCause =
  | 'INVALID_SERVICE'
  | 'NO_TERMINATORS'
  | 'NO_PATH'
  | 'ROUTER_RESPONSE_TIMEOUT'
  | 'ROUTER_ERR_GENERIC'
  | 'ROUTER_ERR_INVALID_TERMINATOR'
  | 'ROUTER_ERR_MISCONFIGURED_TERMINATOR'
  | 'ROUTER_ERR_DIAL_TIMED_OUT'
  | 'ROUTER_ERR_CONN_REFUSED'
  | 'ROUTER_ERR_REJECTED_BY_APPLICATION'
  | 'ROUTER_ERR_DNS_RESOLUTION_FAILED'
  | 'ROUTER_ERR_PORT_NOT_ALLOWED'
  | 'ROUTER_ERR_INVALID_LINK_DESTINATION'
  | 'ROUTER_ERR_RESOURCES_NOT_AVAILABLE'

/** wire: the cause for each error code in the route result of a router, from 0. */
export const routeCauses: readonly FailureCause[] = [
  'ROUTER_ERR_GENERIC',
  'ROUTER_ERR_INVALID_TERMINATOR',
  'ROUTER_ERR_MISCONFIGURED_TERMINATOR',
  'ROUTER_ERR_DIAL_TIMED_OUT',
  'ROUTER_ERR_CONN_REFUSED',
  'ROUTER_ERR_REJECTED_BY_APPLICATION',
  'ROUTER_ERR_DNS_RESOLUTION_FAILED',
  'ROUTER_ERR_PORT_NOT_ALLOWED',
  'ROUTER_ERR_INVALID_LINK_DESTINATION',
  'ROUTER_ERR_RESOURCES_NOT_AVAILABLE',
]

type Described = Pick<NewCircuit, 'id' | 'sessionId' | 'identityId' | 'serviceId' | 'instanceId'> &
  Partial<NewCircuit>

const NANOSECONDS = 1_000_000

/** wire: the tags that the original sends in routes, responses and events. */
export const circuitTags = ({
  serviceId,
  identityId,
  hostId,
}: Pick<Described, 'serviceId' | 'identityId' | 'hostId'>): Record<string, string> => ({
  serviceId,
  clientId: identityId,
  ...(hostId !== undefined && { hostId }),
})

/** Publishes the life of circuits as events. */
export function circuitEvents(events: FabricEvents) {
  const emit = (type: string, circuit: Described, members: Readonly<Record<string, unknown>>): void =>
    events.emit({
      namespace: 'fabric.circuits',
      version: 2,
      event_type: type,
      circuit_id: circuit.id,
      timestamp: new Date().toISOString(),
      client_id: circuit.sessionId,
      service_id: circuit.serviceId,
      terminator_id: circuit.terminatorId ?? '',
      instance_id: circuit.instanceId,
      path: pathOf(circuit),
      link_count: circuit.linkIds?.length ?? 0,
      ...members,
      tags: circuitTags(circuit),
    })
  const age = ({ createdAt }: { readonly createdAt: Date }): number =>
    Math.max(0, Date.now() - createdAt.getTime()) * NANOSECONDS
  const took = (ms: number): number => Math.round(ms * NANOSECONDS)
  return {
    created: (circuit: NewCircuit, tookMs: number, cost: number) =>
      emit('created', circuit, { creation_timespan: took(tookMs), path_cost: cost }),
    moved: (circuit: NewCircuit & { readonly createdAt: Date }) =>
      emit('pathUpdated', circuit, { duration: age(circuit) }),
    deleted: (circuit: NewCircuit & { readonly createdAt: Date }) =>
      emit('deleted', circuit, { duration: age(circuit) }),
    failed: (circuit: Described, tookMs: number, cause: FailureCause, cost?: number) =>
      emit('failed', circuit, {
        creation_timespan: took(tookMs),
        ...(cost !== undefined && { path_cost: cost }),
        failure_cause: cause,
      }),
  }
}

export type CircuitEvents = ReturnType<typeof circuitEvents>

const addresses = {
  initiator_local_addr: 'initiatorLocalAddress',
  initiator_remote_addr: 'initiatorRemoteAddress',
  terminator_local_addr: 'terminatorLocalAddress',
  terminator_remote_addr: 'terminatorRemoteAddress',
} as const satisfies Record<string, keyof NewCircuit>

function pathOf(circuit: Partial<CircuitPath> & Partial<NewCircuit>): object {
  const known = Object.entries(addresses).flatMap(([name, member]) =>
    circuit[member] ? [[name, circuit[member]]] : [],
  )
  return {
    nodes: circuit.routerIds ?? null, // wire: null, not an empty list, before a path is selected; `links` also for a path of one router
    links: circuit.linkIds && circuit.linkIds.length > 0 ? circuit.linkIds : null,
    ingress_id: circuit.ingressAddress ?? '',
    egress_id: circuit.egressAddress ?? '',
    ...Object.fromEntries(known),
  }
}
