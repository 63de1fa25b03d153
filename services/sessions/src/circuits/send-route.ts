import {
  ctrlType,
  DestinationType,
  decodeUint32,
  type Headers,
  type Message,
  type Outgoing,
  Route,
  routeErrorCode,
  routeResultHeader,
  Unroute,
} from '@overlay/channel'
import type { RouterMessages } from '../channel/router-channel.js'
import type { RouterRoute, StopType } from '../domain/route-plan.js'

/** A router does not carry a circuit. */
export class RouteFailed extends Error {
  override readonly name = 'RouteFailed'
  constructor(
    readonly routerId: string,
    /** A routeErrorCode of the router; undefined: it has not answered. */
    readonly code: number | undefined,
    message: string,
    cause?: unknown,
    /** The link of the route that the router does not have. */
    readonly unknownLinkId?: string,
  ) {
    super(message, { cause })
  }
}

export interface Egress {
  readonly binding: string
  /** Address of the terminator. */
  readonly destination: string
  /** By key; for the host. */
  readonly peerData: ReadonlyMap<number, Buffer>
}

export interface RouteOptions {
  readonly circuitId: string
  readonly attempt: number
  readonly timeoutMs: number
  readonly tags: Readonly<Record<string, string>>
  /** Undefined: the circuit has its egress already. */
  readonly egress: { readonly address: string; readonly of: Egress } | undefined
}

const destinationTypes: Readonly<Record<StopType, DestinationType>> = {
  start: DestinationType.START,
  end: DestinationType.END,
  link: DestinationType.LINK,
}

/** Sends a route to a router, and returns the headers of its answer. Throws RouteFailed. */
export async function sendRoute(
  messages: RouterMessages,
  { routerId, forwards, isLast }: RouterRoute,
  { circuitId, attempt, timeoutMs, tags, egress }: RouteOptions,
): Promise<Headers> {
  const body = Route.encode({
    circuitId,
    attempt,
    egress:
      isLast && egress
        ? { ...egress.of, address: egress.address, peerData: new Map(egress.of.peerData) }
        : undefined,
    forwards: forwards.map(({ from, to, toType }) => ({
      sourceAddress: from,
      destinationAddress: to,
      destinationType: destinationTypes[toType],
    })),
    context: undefined,
    timeout: BigInt(timeoutMs) * 1_000_000n,
    tags: new Map(Object.entries(tags)),
  }).finish()
  let answer: Message
  try {
    answer = await messages.request(routerId, { type: ctrlType.route, body }, timeoutMs)
  } catch (err) {
    throw new RouteFailed(routerId, undefined, `router ${routerId} has not answered`, err)
  }
  return headersOf(answer, { routerId, circuitId, attempt, links: linksIn(forwards) })
}

const linksIn = (forwards: RouterRoute['forwards']): readonly string[] =>
  forwards.flatMap(({ to, toType }) => (toType === 'link' ? [to] : []))

interface Sent {
  readonly routerId: string
  readonly circuitId: string
  readonly attempt: number
  /** Links of the router on the path. */
  readonly links: readonly string[]
}

function headersOf({ type, headers, body }: Message, { routerId, circuitId, attempt, links }: Sent): Headers {
  const attempted = headers.get(routeResultHeader.attempt)
  const isAnswer = type === ctrlType.routeResult && attempted?.length === 4 && body.toString() === circuitId
  if (!isAnswer || decodeUint32(attempted) !== attempt)
    throw new RouteFailed(routerId, 0, `router ${routerId} has answered something else`)
  if (headers.has(routeResultHeader.success)) return headers
  const text = headers.get(routeResultHeader.error)?.toString() || 'no reason given'
  const code = headers.get(routeResultHeader.errorCode)?.[0] ?? 0
  const unknown = code === routeErrorCode.unknownLink ? links : []
  const unknownLinkId = unknown.length > 1 ? unknown.find((id) => text.endsWith(` ${id}`)) : unknown[0]
  throw new RouteFailed(routerId, code, `router ${routerId}: ${text}`, undefined, unknownLinkId)
}

/** Makes a router drop the circuit: at once, or when nothing has arrived for a few seconds. */
export const unroute = (circuitId: string, now: boolean): Outgoing => ({
  type: ctrlType.unroute,
  body: Unroute.encode({ circuitId, now }).finish(),
})

export function sendUnroute(
  messages: RouterMessages,
  circuitId: string,
  routerIds: Iterable<string>,
  now: boolean,
): void {
  const message = unroute(circuitId, now)
  for (const routerId of routerIds) messages.send(routerId, message)
}
