import type { TLSSocket } from 'node:tls'
import {
  acceptHello,
  decodeBool,
  groupedHeader,
  type Headers,
  HelloFailed,
  hasBit,
  headerKey,
  type ReceivedHello,
  routerCapability,
} from '@overlay/channel'
import { isAway } from '@overlay/store/postgres'
import { fingerprintOf } from '@overlay/x509'
import type { HelloRefusal } from '../domain/hello.js'
import { featuresOf, type RouterFeatures } from '../domain/router-features.js'
import { isIdentifier, isShowable } from '../domain/router-text.js'
import { MAX_SECRET_BYTES, MOST_LISTENERS } from '../limits.js'
import { linkListenersIn } from './link-listeners.js'

/** A connection that gets no channel. */
export class Refused extends Error {
  override readonly name = 'Refused'
  constructor(
    readonly reason: HelloRefusal,
    detail: string = reason,
  ) {
    super(detail)
  }
}

/** Throws Refused unless the network has issued the certificate of the peer, and it is valid. */
export function verifiedFingerprint(socket: TLSSocket): string {
  const { raw } = socket.getPeerCertificate() // `getPeerX509Certificate` takes the chain out of the TLS session
  if (!raw) throw new Refused('no-certificate')
  if (!socket.authorized) throw new Refused('untrusted', String(socket.authorizationError))
  return fingerprintOf({ raw })
}

/** For failures of the admission. */
export function refuseIfAway(err: unknown): never {
  throw isAway(err) ? new Refused('unavailable', String(err)) : err
}

/** The first message of a router. Throws Refused. */
export const receiveHello = (socket: TLSSocket, withinMs: number): Promise<ReceivedHello> =>
  acceptHello(socket, withinMs).catch((err: Error) => {
    throw new Refused(err instanceof HelloFailed ? 'no-hello' : 'malformed', err.message)
  })

/** What the hello of a router says. */
export interface RouterHello {
  readonly features: RouterFeatures
  /** Protobuf `Listeners`, as received. */
  readonly linkListeners: Buffer
  /** The id of the connection that this one continues. Empty: there is none. */
  readonly formerConnectionId: string
  /** Of a grouped connection. */
  readonly group: HelloGroup | undefined
}

/** A group of connections of one router, of which we have one. */
export interface HelloGroup {
  readonly type: Buffer
  /** Empty: the router has none yet. */
  readonly secret: Buffer
}

/** Reads a hello, and throws Refused if it is not the hello of a router. */
export function readHello({ version, headers }: ReceivedHello): RouterHello {
  const group = groupIn(headers)
  // what cannot be stored, shown, or read by others, would harm the presence of all routers
  if (!Object.values(version).every(isShowable))
    throw new Refused('malformed', 'the version contains characters that cannot be shown')
  return {
    features: featuresOf(version, group !== undefined),
    linkListeners: listenersIn(headers, group !== undefined),
    formerConnectionId: connectionIdIn(headers, group !== undefined),
    group,
  }
}

const types: ReadonlySet<string> = new Set(['ctrl.default', 'ctrl.high', 'ctrl.low'])
const nothing = Buffer.alloc(0)

/** wire: a router that has lost all connections may begin with any of the types. */
function groupIn(headers: Headers): HelloGroup | undefined {
  const type = headers.get(headerKey.type)
  if (!isSet(headers, groupedHeader.isGrouped)) {
    if (type) throw new Refused('not-a-router')
    return undefined
  }
  if (!type || !types.has(type.toString('latin1'))) throw new Refused('not-a-router')
  // further connections are not announced; one must not replace the first, as the hello of a new process does
  if (!isSet(headers, groupedHeader.isFirst)) throw new Refused('not-first')
  const secret = headers.get(groupedHeader.secret) ?? nothing
  if (secret.length > MAX_SECRET_BYTES) throw new Refused('malformed', 'the secret of the group is too long')
  return { type, secret }
}

const isSet = (headers: Headers, key: number): boolean => decodeBool(headers.get(key) ?? nothing)

/** wire: routers with several connections use another key. In a grouped hello, the former key has the secret. */
function listenersIn(headers: Headers, isGrouped: boolean): Buffer {
  const capabilities = headers.get(groupedHeader.capabilities) ?? nothing
  const isMultiChannel = hasBit(capabilities, routerCapability.multiChannel)
  const former = isGrouped ? undefined : headers.get(headerKey.listeners)
  const encoded = isMultiChannel ? headers.get(groupedHeader.listeners) : former
  const listeners = linkListenersIn(encoded)
  if (!listeners) throw new Refused('malformed', 'the link listeners cannot be decoded')
  if (listeners.length > MOST_LISTENERS)
    throw new Refused('malformed', `${listeners.length} link listeners, at most ${MOST_LISTENERS}`)
  if (!listeners.every(isListener)) throw new Refused('malformed', 'a link listener has no valid address')
  return encoded ?? nothing
}

type Listener = NonNullable<ReturnType<typeof linkListenersIn>>[number]

/** What other routers can read. */
export const isListener = ({ address, protocol, costTags, groups, localBinding }: Listener): boolean =>
  [address, protocol].every(isIdentifier) && [...costTags, ...groups, localBinding].every(isShowable)

function connectionIdIn(headers: Headers, isGrouped: boolean): string {
  const id = (headers.get(headerKey.connectionId) ?? nothing).toString('latin1')
  // the answer to a grouped hello repeats it
  if (isGrouped && id !== '' && !connectionId.test(id))
    throw new Refused('malformed', 'no valid connection id')
  return id
}

/** Above the length of a controller id, a UUID and the number of a try. */
const connectionId = /^[\x21-\x7e]{1,300}$/
