import { MOST_LISTENERS } from '../limits.js'
import { isIdentifier } from './router-text.js'

/** Why a connection to the control channel is refused. */
export type HelloRefusal =
  | 'no-certificate' // none was presented
  | 'untrusted' // not issued by the network, or expired
  | 'no-hello' // none in time, or another message
  | 'malformed' // not a message, or one beyond the limits
  | 'not-a-router' // a peer of another type
  | 'not-first' // a further connection of a router
  | 'unknown-router'
  | 'not-enrolled'
  | 'wrong-certificate' // of another router, or a former one
  | 'disabled'
  | 'contested' // several processes use the identity of this router
  | 'unavailable' // the database does not answer
  | 'stopping'

/** What a router's row says about its connections. */
export interface Admissible {
  readonly disabled: boolean
  readonly fingerprint: string | undefined
  readonly formerFingerprints: readonly string[]
  readonly unverifiedFingerprint: string | undefined
}

/**
 * What a certificate is to a router. While one replaces another, the router may have stored either: it may have stopped
 * before it stored the new one, or before it received the answer to its verification.
 */
export function standingOf(
  { fingerprint, formerFingerprints, unverifiedFingerprint }: Omit<Admissible, 'disabled'>,
  presented: string,
): 'current' | 'former' | 'unverified' | undefined {
  if (presented === fingerprint) return 'current'
  if (presented === unverifiedFingerprint) return 'unverified'
  return formerFingerprints.includes(presented) ? 'former' : undefined
}

/** Why this router may not connect with a certificate. Undefined: it may. */
export function refusalOf(router: Admissible | undefined, fingerprint: string): HelloRefusal | undefined {
  if (!router) return 'unknown-router'
  if (router.fingerprint === undefined) return 'not-enrolled'
  if (!standingOf(router, fingerprint)) return 'wrong-certificate'
  return router.disabled ? 'disabled' : undefined
}

interface Address {
  readonly value: string
  readonly protocol: string
  readonly hostname: string
  readonly port: number
}

/** What a router says about its listeners. */
export interface ClientHello {
  readonly listeners: readonly { readonly advertise?: Address | undefined }[]
  /** Of older routers, in parallel lists. */
  readonly protocols: readonly string[]
  readonly protocolPorts: readonly string[]
  readonly hostname: string
}

/** URLs by protocol. wire: of two listeners with one protocol the last one counts. Leaves out what is no URL. */
export const supportedProtocolsOf = (hello: ClientHello): Record<string, string> =>
  Object.fromEntries(protocolsIn(hello).filter((pair) => pair.every(isIdentifier)))

function protocolsIn(hello: ClientHello): (readonly [protocol: string, url: string])[] {
  const advertised = hello.listeners.flatMap(({ advertise }) => advertise ?? [])
  if (advertised.length > 0)
    return advertised
      .slice(0, MOST_LISTENERS)
      .map(({ protocol, hostname, port }) => [protocol, `${protocol}://${hostname}:${port}`])
  return hello.protocols.slice(0, MOST_LISTENERS).flatMap((protocol, at): [string, string][] => {
    const port = hello.protocolPorts[at]
    return port === undefined ? [] : [[protocol, `${protocol}://${hello.hostname}:${port}`]]
  })
}
