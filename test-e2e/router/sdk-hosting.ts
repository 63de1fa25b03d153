import {
  decodeBool,
  edgeType,
  encodeBool,
  encodeText,
  encodeUint32,
  HealthEvent,
  type Message,
  type Outgoing,
  peerDataKey,
} from '@overlay/channel'
import type { SdkSession } from './admission.js'
import type { CircuitEnd } from './circuit-end.js'
import { dialerPeerData } from './lines.js'
import { lossOf, type RouterParts, type SdkChannel } from './sdk-channel.js'
import { connIdOf, connType, onConnection, sdkHeader, sdkType } from './sdk-messages.js'
import type { DialedCircuit, Host, Terminator } from './terminators.js'

/** The services that an SDK hosts. */
export interface Hosting {
  bind(message: Message): void
  unbind(message: Message): void
  /** Changes the cost or the precedence. */
  update(message: Message): void
  healthEvent(message: Message): void
  /** Ends what the model no longer permits. */
  verify(): void
  /** The channel of the SDK has closed. */
  closed(): void
}

const DIAL_MS = 5000
const INSPECT_MS = 10_000
/** Ids of connections that the router chooses are above those that SDKs choose. */
const FIRST_CONN_ID = 2 ** 31

export function openHosting(
  sdk: SdkChannel,
  {
    admission,
    terminators,
    sessions,
    controllers,
  }: Pick<RouterParts, 'admission' | 'terminators' | 'sessions' | 'controllers'>,
): Hosting {
  const { channel } = sdk
  /** Each with what forgets it, and what ends it if it loses its grant. */
  const hosts = new Map<Host, { forget(): void; check(): void }>()
  const circuits = new Map<Host, Set<CircuitEnd>>()
  let nextConnId = FIRST_CONN_ID

  const own = (): Terminator[] => terminators.all().filter(({ host }) => hosts.has(host))
  const named = (message: Message): Terminator[] => {
    const [connId, token] = [connIdOf(message), message.body.toString()]
    return own().filter(({ binding }) => binding.connId === connId && binding.sessionToken === token)
  }

  function hostOf(
    { headers, body }: Message,
    session: SdkSession,
    connId: number,
    assignsIds: boolean,
  ): Host {
    const served = new Set<CircuitEnd>()
    const host: Host = {
      isOpen: () => !channel.closed.aborted,
      established() {
        if (isSet(headers.get(sdkHeader.supportsBindSuccess)))
          channel.send({ type: sdkType.bindSuccess, headers: onConnection(connId) })
      },
      closed(reason) {
        hosts.get(host)?.forget()
        hosts.delete(host)
        channel.send({ type: sdkType.stateClosed, headers: onConnection(connId), body: encodeText(reason) })
      },
      async stillHosts() {
        if (!isSet(headers.get(sdkHeader.supportsInspect))) return true
        const question = { type: sdkType.connInspectRequest, headers: onConnection(connId) }
        const reply = await channel.request(question, INSPECT_MS)
        return reply.headers.get(sdkHeader.connType)?.[0] === connType.bind
      },
      async dial(circuit) {
        const open = (id: number): CircuitEnd => {
          const end = sdk.open({ ...circuit, connId: id, session, isIngress: false })
          served.add(end)
          return end
        }
        const id = assignsIds ? nextConnId++ : undefined
        const end = id === undefined ? undefined : open(id)
        try {
          const reply = await channel.request(dialOf(circuit, connId, body, id), DIAL_MS)
          if (reply.type !== sdkType.dialSuccess)
            throw new Error(`the host refused: ${reply.body.toString()}`)
          if (end) return
          open(reply.body.readUInt32LE())
          channel.reply(reply, { type: sdkType.stateConnected, headers: onConnection(connId) })
        } catch (err) {
          end?.close((err as Error).message)
          throw err
        }
      },
    }
    circuits.set(host, served)
    return host
  }

  /** Ends what is hosted, and the circuits that it serves. */
  function lose(host: Host): void {
    const lost = own().filter((one) => one.host === host)
    for (const end of circuits.get(host) ?? []) end.close('bind access lost')
    terminators.remove(lost, 'bind access lost', true)
  }

  return {
    bind(message) {
      const { headers } = message
      const { access } = sdk
      const connId = connIdOf(message)
      let session: SdkSession
      try {
        session = admission.session(access, message.body.toString(), 'bind')
        if (sessions.isRemoved(session.key)) throw new Error('invalid session')
      } catch (err) {
        sdk.refuse(message, (err as Error).message)
        return
      }
      const assignsIds = isSet(headers.get(sdkHeader.routerProvidedConnId))
      const publicKey = headers.get(sdkHeader.publicKey)
      const host = hostOf(message, session, connId, assignsIds)
      const end = (): void => terminators.remove(named(message), 'session ended', true)
      const forget = sessions.onRemoved(session.key, end)
      const isGranted = (): boolean => admission.isGranted(sdk.access, session, 'bind')
      hosts.set(host, { forget, check: lossOf(isGranted, () => lose(host)) })
      const echoed = assignsIds ? encodeBool(true) : undefined
      channel.reply(message, {
        type: sdkType.stateConnected,
        headers: onConnection(connId, [sdkHeader.routerProvidedConnId, echoed]),
      })
      terminators.bind(
        {
          sessionToken: session.token,
          fingerprints: access.fingerprints,
          apiSessionToken: () => admission.sentTokenOf(sdk.access, session),
          controller: () => admission.controllerOf(sdk.access),
          connId,
          listenerId: headers.get(sdkHeader.listenerId)?.toString() ?? '',
          cost: headers.get(sdkHeader.cost)?.readUInt16LE() ?? 0,
          precedence: headers.get(sdkHeader.precedence)?.[0] ?? 0,
          instanceId: headers.get(sdkHeader.instanceId)?.toString() ?? '',
          instanceSecret: headers.get(sdkHeader.instanceSecret) ?? Buffer.alloc(0),
          peerData: new Map(publicKey ? [[peerDataKey.publicKey, publicKey]] : []),
        },
        host,
      )
    },
    unbind: (message) => terminators.remove(named(message), 'unbind successful', false),
    update(message) {
      const cost = message.headers.get(sdkHeader.cost)?.readUInt16LE()
      const precedence = message.headers.get(sdkHeader.precedence)?.[0]
      const change = { ...(cost !== undefined && { cost }), ...(precedence !== undefined && { precedence }) }
      for (const terminator of named(message)) terminators.update(terminator, change)
    },
    healthEvent(message) {
      for (const { id, binding } of named(message)) {
        const body = HealthEvent.encode({
          sessionToken: binding.sessionToken,
          fingerprints: [...binding.fingerprints],
          terminatorId: id,
          checkPassed: isSet(message.headers.get(sdkHeader.healthStatus)),
          apiSessionToken: binding.apiSessionToken(),
        }).finish()
        controllers.any()?.channel.send({ type: edgeType.healthEvent, body })
      }
    },
    verify() {
      for (const { check } of [...hosts.values()]) check()
    },
    closed: () => {
      terminators.remove(own(), 'channel closed', false)
      for (const { forget } of hosts.values()) forget()
      hosts.clear()
    },
  }
}

const isSet = (value: Buffer | undefined): boolean => value !== undefined && decodeBool(value)

const dialOf = (
  { circuitId, peerData }: DialedCircuit,
  connId: number,
  sessionToken: Buffer,
  providedId: number | undefined,
): Outgoing => ({
  type: sdkType.dial,
  headers: onConnection(
    connId,
    [sdkHeader.circuitId, encodeText(circuitId)],
    [sdkHeader.callerId, peerData.get(peerDataKey.callerId) ?? encodeText('')],
    [sdkHeader.publicKey, peerData.get(peerDataKey.publicKey)],
    [sdkHeader.appData, peerData.get(peerDataKey.appData)],
    [sdkHeader.marker, peerData.get(peerDataKey.connectionMarker)],
    [sdkHeader.dialerIdentityId, peerData.get(dialerPeerData.identityId)],
    [sdkHeader.dialerIdentityName, peerData.get(dialerPeerData.identityName)],
    [sdkHeader.routerProvidedConnId, providedId === undefined ? undefined : encodeUint32(providedId)],
  ),
  body: sessionToken,
})
