import { X509Certificate } from 'node:crypto'
import { hostIn, hostText } from '@overlay/x509'

/** A host that a router asks for and may not have. */
export interface RefusedHost {
  readonly host: string
  /** The router that uses it. Empty: a wildcard. */
  readonly routerId: string
}

/**
 * The hosts, of those that a router asks for, that it may not have.
 * @param owned what its certificates have: that stays
 * @param used the hosts of other routers, with their routers
 */
export function refusedHosts(
  asked: readonly string[],
  owned: ReadonlySet<string>,
  used: ReadonlyMap<string, string>,
): RefusedHost[] {
  return asked.flatMap((host) => {
    if (owned.has(host)) return []
    if (host.startsWith('*.')) return [{ host, routerId: '' }]
    const routerId = used.get(host)
    return routerId === undefined ? [] : [{ host, routerId }]
  })
}

/** Canonical. Names of other kinds are left out. */
export function hostsOfCertificate(certPem: string): string[] {
  const names = new X509Certificate(certPem).subjectAltName ?? ''
  const texts = [...names.matchAll(/(?:^|, )(?:DNS|IP Address):([^,"]+)/g)].map(([, text = '']) => text)
  return canonical(texts)
}

/** Of addresses such as `tls:edge.example.org:3022`, `wss://edge.example.org:443` or `edge.example.org:3022`. */
export const hostsOfListeners = (urls: readonly string[]): string[] =>
  canonical(urls.map((url) => url.replace(SCHEME, '').replace(/:\d*(\/.*)?$/, '')))

/** What is before the first colon is a host if a port follows it. */
const SCHEME = /^[a-z][a-z0-9+.-]*:(\/\/|(?!\d*(\/|$)))/i

const canonical = (texts: readonly string[]): string[] =>
  texts.flatMap((text) => {
    const host = hostIn(text.replace(/^\[(.*)\]$/, '$1'))
    return host ? [hostText(host)] : []
  })
