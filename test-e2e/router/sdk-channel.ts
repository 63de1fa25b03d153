import type { TLSSocket } from 'node:tls'
import {
  type Channel,
  encodeText,
  encodeUint32,
  type FirstMessage,
  type Message,
  openChannel,
} from '@overlay/channel'
import type { Admission, SdkAccess, SdkSession } from './admission.js'
import { type CircuitEnd, openCircuitEnd, type Peer, type Piece } from './circuit-end.js'
import type { Controllers } from './controllers.js'
import type { Forwarder } from './forwarder.js'
import type { Posture } from './model-access.js'
import { connect } from './sdk-connect.js'
import { openHosting } from './sdk-hosting.js'
import { carriedHeaders, connIdOf, onConnection, sdkHeader, sdkType } from './sdk-messages.js'
import type { Sessions } from './sessions.js'
import type { Terminators } from './terminators.js'
import { untilClosed } from './until-closed.js'

export interface RouterParts {
  readonly admission: Admission
  readonly controllers: Controllers
  readonly forwarder: Forwarder
  readonly sessions: Sessions
  readonly terminators: Terminators
  /** What the router adds to the peer data of circuits. */
  dialerData(identityId: string): ReadonlyMap<number, Buffer>
  /** Ends have this long to deliver what is under way when the controller removes their circuit. */
  readonly closeWaitMs: number
  /** An end of a circuit has closed. */
  onCircuitEnd(circuitId: string, controllerId: string, isIngress: boolean): void
}

/** The channel of an SDK. */
export interface SdkChannel {
  /** Changes when the SDK renews its token. */
  readonly access: SdkAccess
  readonly channel: Channel
  /** Opens a connection of the SDK on a circuit. Throws if the id is in use. */
  open(connection: NewConnection): CircuitEnd
  /** Refuses a bind or a connect. */
  refuse(message: Message, reason: string): void
  /** Ends what the API session or the model no longer permits. */
  verify(): void
}

export interface NewConnection {
  readonly connId: number
  readonly circuitId: string
  readonly controllerId: string
  readonly address: string
  readonly session: SdkSession
  readonly isIngress: boolean
}

const NEVER_MS = 2 ** 31 - 1 // SDKs answer no heartbeats

/** Serves an SDK whose API session is verified. */
export function openSdkChannel(
  socket: TLSSocket,
  { decoder }: FirstMessage,
  admitted: SdkAccess,
  parts: RouterParts,
): SdkChannel {
  const { admission, forwarder, sessions, closeWaitMs, onCircuitEnd } = parts
  let access = admitted
  const ends = new Map<number, CircuitEnd>()
  /** Closes ends of dials that lose their grant. */
  const grants = new Map<CircuitEnd, () => void>()
  const channel = openChannel(socket, {
    decoder,
    onMessage: (message) => handlers[message.type]?.(message),
    heartbeatMs: NEVER_MS,
    maxWaiting: 1, // the window of a circuit must stop the application
  })

  const handlers: Readonly<Record<number, (message: Message) => Promise<void> | undefined | void>> = {
    [sdkType.data]: (message) => ends.get(connIdOf(message))?.push(pieceOf(message)),
    [sdkType.stateClosed]: (message) => void ends.get(connIdOf(message))?.finish(),
    [sdkType.connect]: (message) => void connect(sdk, message, parts),
    [sdkType.bind]: (message) => hosting.bind(message),
    [sdkType.unbind]: (message) => hosting.unbind(message),
    [sdkType.updateBind]: (message) => hosting.update(message),
    [sdkType.healthEvent]: (message) => hosting.healthEvent(message),
    [sdkType.postureResponses]({ body }) {
      access = admission.report(access, JSON.parse(String(body)) as Posture)
      sdk.verify()
    },
    [sdkType.updateToken](message) {
      try {
        access = admission.renew(access, message.body.toString())
        channel.reply(message, { type: sdkType.updateTokenSuccess })
      } catch (err) {
        channel.reply(message, { type: sdkType.updateTokenFailed, body: encodeText((err as Error).message) })
        if (access.claims) channel.close('invalid token')
      }
    },
  }

  function open(connection: NewConnection): CircuitEnd {
    const { connId, circuitId, controllerId, address, isIngress, session } = connection
    if (ends.has(connId)) throw new Error(`connection id ${connId} already in use`)
    const end = openCircuitEnd({
      circuitId,
      address,
      isIngress,
      forwarder,
      closeWaitMs,
      peer: peerOf(connId),
      onClosed() {
        ends.delete(connId)
        grants.delete(end)
        forget?.()
        onCircuitEnd(circuitId, controllerId, isIngress)
      },
    })
    // wire: routers close connections of clients with their session, and leave those of hosts
    const forget = isIngress ? sessions.onRemoved(session.key, () => end.close('session closed')) : undefined
    ends.set(connId, end)
    if (isIngress)
      grants.set(
        end,
        lossOf(
          () => admission.isGranted(access, session, 'dial'),
          () => end.close('dial access lost'),
        ),
      )
    return end
  }

  function peerOf(connId: number): Peer {
    let sequence = 0
    const send = (type: number, { headers, data }: Piece): void =>
      channel.send({
        type,
        headers: onConnection(connId, [sdkHeader.sequence, encodeUint32(++sequence)], ...headers),
        body: data,
      })
    return {
      deliver(piece) {
        send(sdkType.data, piece)
        return channel.drained().catch(() => undefined) // the connection ends with the channel
      },
      ended: (reason) => send(sdkType.stateClosed, { headers: [], data: encodeText(reason) }),
    }
  }

  const sdk: SdkChannel = {
    get access() {
      return access
    },
    channel,
    open,
    refuse: (message, reason) =>
      channel.reply(message, {
        type: sdkType.stateClosed,
        headers: onConnection(connIdOf(message)),
        body: encodeText(reason),
      }),
    verify() {
      if (admission.isEnded(access)) channel.close('the API session has ended')
      for (const check of [...grants.values()]) check()
      hosting.verify()
    },
  }
  const hosting = openHosting(sdk, parts)
  void untilClosed(channel).then(() => {
    hosting.closed()
    for (const end of [...ends.values()]) end.close('channel closed')
  })
  return sdk
}

/** Calls back once something is no longer so that was so before. */
export function lossOf(holds: () => boolean, lost: () => void): () => void {
  let held = holds()
  return () => {
    const holdsNow = holds()
    if (held && !holdsNow) lost()
    held = holdsNow
  }
}

const pieceOf = ({ headers, body }: Message): Piece => ({
  data: body,
  headers: [...headers].filter(([key]) => carriedHeaders.includes(key)),
})
