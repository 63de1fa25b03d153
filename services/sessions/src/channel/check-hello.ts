import type { TLSSocket } from 'node:tls'
import {
  acceptHello,
  capability,
  encodeText,
  encodeVersion,
  type Headers,
  HelloFailed,
  headerKey,
  type ReceivedHello,
} from '@overlay/channel'
import { isAway } from '@overlay/store/postgres'
import { fingerprintOf } from '@overlay/x509'
import { newConnectionId } from '../domain/connection-id.js'
import type { HelloRefusal } from '../domain/hello.js'
import { isIdentifier, isShowable } from '../domain/router-text.js'
import { MAX_ROUTER_ID_LENGTH } from '../limits.js'
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

/** The hello of a router. Throws Refused. */
export async function receiveHello(socket: TLSSocket, withinMs: number): Promise<ReceivedHello> {
  const hello = await acceptHello(socket, withinMs).catch((err: Error) => {
    throw new Refused(err instanceof HelloFailed ? 'no-hello' : 'malformed', err.message)
  })
  if (hello.headers.has(headerKey.type)) throw new Refused('not-a-router')
  if (hello.routerId.length > MAX_ROUTER_ID_LENGTH) throw new Refused('malformed', 'the id is too long')
  // what cannot be stored, shown, or read by others, would harm the presence of all routers
  if (!Object.values(hello.version).every(isShowable))
    throw new Refused('malformed', 'the version contains characters that cannot be shown')
  const listeners = linkListenersIn(hello.headers.get(headerKey.listeners))
  if (!listeners) throw new Refused('malformed', 'the link listeners cannot be decoded')
  if (!listeners.every(isListener)) throw new Refused('malformed', 'a link listener has no valid address')
  return hello
}

type Listener = NonNullable<ReturnType<typeof linkListenersIn>>[number]

const isListener = ({ address, protocol, costTags, groups, localBinding }: Listener): boolean =>
  [address, protocol].every(isIdentifier) && [...costTags, ...groups, localBinding].every(isShowable)

const { createTerminatorV2, singleRouterLinkSource, createCircuitV2 } = capability
const capabilities = (1 << createTerminatorV2) | (1 << singleRouterLinkSource) | (1 << createCircuitV2)
const version = encodeVersion({ version: 'v1.1.13', revision: '', buildDate: '', os: '', arch: '' })

/** Headers of the answer to the hello. */
export const answerOf = (controllerId: string): Headers =>
  new Map([
    [headerKey.connectionId, encodeText(newConnectionId(controllerId))],
    [headerKey.version, version],
    [headerKey.id, encodeText(controllerId)],
    [headerKey.capabilities, Buffer.of(capabilities)],
  ])
