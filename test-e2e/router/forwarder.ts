import { DestinationType, type Route } from '@overlay/channel'

interface ParcelOf<Kind extends string> {
  readonly kind: Kind
  readonly circuitId: string
  /** Sent by the end at the router of the dialer. */
  readonly isFromIngress: boolean
}

/** Data of an application, from one end of a circuit to the other. */
export interface Payload extends ParcelOf<'payload'> {
  /** Counts from 0 at each end. */
  readonly sequence: number
  readonly data: Buffer
  /** Headers of the SDK's message that the other SDK receives. */
  readonly headers: readonly (readonly [number, Buffer])[]
  /** Nothing follows. */
  readonly isEnd: boolean
}

/** The sender has delivered all payloads before this one. */
export interface Acknowledgement extends ParcelOf<'acknowledgement'> {
  readonly sequence: number
}

export type Parcel = Payload | Acknowledgement

/** An end of a circuit, or a link. */
export interface Destination {
  take(parcel: Parcel): void
  /** The circuit is gone. */
  unrouted?(): void
  /** The circuit has another path. */
  rerouted?(): void
}

/** A route that names a destination that the router does not have. */
export class RouteRefused extends Error {
  override readonly name = 'RouteRefused'
}

interface Circuit {
  /** Id of the controller that set it up. Faults go to no other. */
  controllerId: string
  readonly forwards: Map<string, string>
  lastActiveMs: number
}

export interface Forwarder {
  /** Registers an end of a circuit, or a link. */
  register(address: string, destination: Destination): void
  unregister(address: string, destination: Destination): void
  has(address: string): boolean
  /** Adds or replaces a circuit. Throws RouteRefused. */
  route(controllerId: string, route: Route): void
  unroute(circuitId: string): void
  /** Unregisters the ends of a circuit. */
  endCircuit(circuitId: string): void
  /** Sends a parcel on from an address. */
  forward(from: string, parcel: Parcel): void
  /** Circuits, with the milliseconds since their last parcel. */
  circuits(): { readonly circuitId: string; readonly controllerId: string; readonly idleMs: number }[]
  /** The addresses where a circuit begins or ends here. Undefined: the circuit is unknown. */
  endsOf(circuitId: string): readonly string[] | undefined
}

export interface ForwarderOptions {
  /** A route names a link that is gone. */
  onInvalidLink(linkId: string): void
  /** A circuit leads to nowhere. */
  onForwardFault(circuitId: string, controllerId: string): void
}

export function openForwarder({ onInvalidLink, onForwardFault }: ForwarderOptions): Forwarder {
  const destinations = new Map<string, Destination>()
  const circuits = new Map<string, Circuit>()

  const endsOf = (circuit: Circuit | undefined): Destination[] =>
    [...(circuit?.forwards.values() ?? [])].flatMap((address) => destinations.get(address) ?? [])

  function endCircuit(circuitId: string): void {
    for (const end of endsOf(circuits.get(circuitId))) end.unrouted?.()
  }

  return {
    register: (address, destination) => void destinations.set(address, destination),
    unregister(address, destination) {
      if (destinations.get(address) === destination) destinations.delete(address)
    },
    has: (address) => destinations.has(address),
    route(controllerId, { circuitId, forwards }) {
      for (const { destinationAddress, destinationType } of forwards) {
        // the end at the dialer registers after the answer
        if (destinationType === DestinationType.START || destinations.has(destinationAddress)) continue
        if (destinationType === DestinationType.LINK) onInvalidLink(destinationAddress)
        throw new RouteRefused(`unknown destination ${destinationAddress}`)
      }
      const circuit = circuits.get(circuitId) ?? { controllerId, forwards: new Map(), lastActiveMs: 0 }
      const isAgain = circuits.has(circuitId)
      circuit.lastActiveMs = Date.now()
      for (const { sourceAddress, destinationAddress } of forwards) {
        circuit.forwards.set(sourceAddress, destinationAddress)
      }
      circuits.set(circuitId, circuit)
      if (isAgain) for (const end of endsOf(circuit)) end.rerouted?.()
    },
    unroute(circuitId) {
      endCircuit(circuitId)
      circuits.delete(circuitId)
    },
    endCircuit,
    forward(from, parcel) {
      const circuit = circuits.get(parcel.circuitId)
      if (!circuit) return
      circuit.lastActiveMs = Date.now()
      const destination = destinations.get(circuit.forwards.get(from) ?? '')
      if (destination) destination.take(parcel)
      else if (parcel.kind === 'payload' && !parcel.isEnd)
        onForwardFault(parcel.circuitId, circuit.controllerId)
    },
    circuits: () =>
      [...circuits].map(([circuitId, { controllerId, lastActiveMs }]) => ({
        circuitId,
        controllerId,
        idleMs: Date.now() - lastActiveMs,
      })),
    endsOf(circuitId) {
      const circuit = circuits.get(circuitId)
      return (
        circuit && [...circuit.forwards.values()].filter((address) => destinations.get(address)?.unrouted)
      )
    },
  }
}
