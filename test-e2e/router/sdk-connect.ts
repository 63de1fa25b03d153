import {
  circuitRequestHeader,
  circuitResponseHeader,
  decodeBytesMap,
  edgeType,
  encodeBytesMap,
  encodeText,
  encodeTextList,
  type Message,
  peerDataKey,
} from '@overlay/channel'
import type { SdkAccess } from './admission.js'
import type { Controller } from './controllers.js'
import type { RouterParts, SdkChannel } from './sdk-channel.js'
import { connIdOf, onConnection, sdkHeader, sdkType } from './sdk-messages.js'

const CIRCUIT_MS = 30_000

/** Headers of a connect, and their keys in the peer data of the circuit. */
const requestPeerData = [
  [sdkHeader.publicKey, peerDataKey.publicKey],
  [sdkHeader.callerId, peerDataKey.callerId],
  [sdkHeader.appData, peerDataKey.appData],
  [sdkHeader.marker, peerDataKey.connectionMarker],
  [sdkHeader.stickinessToken, peerDataKey.stickinessToken],
] as const

interface NewCircuit {
  readonly circuitId: string
  readonly address: string
  readonly peerData: readonly (readonly [number, Buffer])[]
}

/** Answers an SDK that dials a service. */
export async function connect(
  sdk: SdkChannel,
  message: Message,
  { admission, sessions, dialerData }: Pick<RouterParts, 'admission' | 'sessions' | 'dialerData'>,
): Promise<void> {
  const connId = connIdOf(message)
  try {
    const { access } = sdk
    const controller = admission.controllerOf(access)
    if (!controller) throw new Error('no controller available, cannot create circuit')
    const session = admission.session(access, message.body.toString(), 'dial')
    const own = dialerData(access.identityId)
    const { circuitId, address, peerData } = await requestCircuit(message, controller, access, own)
    const end = sdk.open({
      connId,
      circuitId,
      controllerId: controller.id,
      address,
      session,
      isIngress: true,
    })
    sdk.channel.reply(message, {
      type: sdkType.stateConnected,
      headers: onConnection(connId, [sdkHeader.circuitId, encodeText(circuitId)], ...peerData),
    })
    if (sessions.isRemoved(session.key)) end.close('session closed')
    if (sdk.channel.closed.aborted) end.close('channel closed')
  } catch (err) {
    sdk.refuse(message, (err as Error).message)
  }
}

async function requestCircuit(
  message: Message,
  controller: Controller,
  { apiSessionToken, fingerprints }: SdkAccess,
  own: ReadonlyMap<number, Buffer>,
): Promise<NewCircuit> {
  const peerData = new Map([
    ...requestPeerData.flatMap(([from, to]) => {
      const value = message.headers.get(from)
      return value ? [[to, value] as const] : []
    }),
    ...own,
  ])
  const headers = new Map([
    [circuitRequestHeader.sessionToken, message.body],
    [circuitRequestHeader.apiSessionToken, encodeText(apiSessionToken)],
    [circuitRequestHeader.fingerprints, encodeTextList(fingerprints)],
    [circuitRequestHeader.terminatorInstanceId, message.headers.get(sdkHeader.instanceId) ?? encodeText('')],
    [circuitRequestHeader.peerData, encodeBytesMap(peerData)],
  ])
  const reply = await controller.channel.request({ type: edgeType.createCircuitV2, headers }, CIRCUIT_MS)
  if (reply.type !== edgeType.createCircuitV2Response) throw new Error(reply.body.toString())
  const text = (key: number): string => reply.headers.get(key)?.toString() ?? ''
  const received = reply.headers.get(circuitResponseHeader.peerData)
  return {
    circuitId: text(circuitResponseHeader.circuitId),
    address: text(circuitResponseHeader.address),
    peerData: [...(received ? decodeBytesMap(received) : [])].map(
      ([key, value]) =>
        [key === peerDataKey.stickinessToken ? sdkHeader.stickinessToken : key, value] as const,
    ),
  }
}
