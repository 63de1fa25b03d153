import {
  ctrlType,
  encodeBool,
  encodeText,
  encodeUint32,
  type Message,
  Route,
  type RouteEgress,
  routeErrorCode,
  routeResultHeader,
} from '@overlay/channel'
import type { Controller } from './controllers.js'
import type { RouterParts } from './sdk-channel.js'
import type { Terminators } from './terminators.js'

/** A circuit that leads to a terminator that the router does not have. */
class UnknownTerminator extends Error {
  override readonly name = 'UnknownTerminator'
}

/** Sets up or moves a circuit, and answers the controller. */
export async function takeRoute(
  message: Message,
  { id: controllerId, channel }: Controller,
  { forwarder, terminators }: Pick<RouterParts, 'forwarder' | 'terminators'>,
): Promise<void> {
  const route = Route.decode(message.body)
  const { circuitId, attempt, egress } = route
  const answer = (...headers: (readonly [number, Buffer])[]): void =>
    channel.reply(message, {
      type: ctrlType.routeResult,
      headers: new Map([[routeResultHeader.attempt, encodeUint32(attempt)], ...headers]),
      body: encodeText(circuitId),
    })
  try {
    if (egress && !forwarder.has(egress.address)) await dial(terminators, circuitId, egress, controllerId)
    forwarder.route(controllerId, route)
    answer([routeResultHeader.success, encodeBool(true)])
  } catch (err) {
    const code = err instanceof UnknownTerminator ? routeErrorCode.invalidTerminator : routeErrorCode.generic
    answer(
      [routeResultHeader.error, encodeText((err as Error).message)],
      [routeResultHeader.errorCode, Buffer.from([code])],
    )
  }
}

async function dial(
  terminators: Terminators,
  circuitId: string,
  { address, destination, peerData }: RouteEgress,
  controllerId: string,
): Promise<void> {
  const id = destination.replace(/^hosted:/, '')
  const host = terminators.get(id)?.host ?? terminators.tunnels.get(id)
  if (!host) throw new UnknownTerminator(`host for terminator address '${destination}' not found`)
  await host.dial({ circuitId, controllerId, address, peerData })
}
