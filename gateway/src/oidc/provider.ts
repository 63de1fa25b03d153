import { boundedLines, type LineLog, printable } from '@overlay/process'
import { clientAddressOf } from '@overlay/process/tls'
import { sourceOf } from '@overlay/rpc'
import { CLIENTS } from '../cache/access-token.js'
import type { Services } from '../clients/services.js'
import type { RequestContext } from '../http/exchange.js'
import { forbidStoring } from '../http/send.js'
import { write } from '../http/write.js'
import { LOGGED_URI_CHARACTERS, MAX_URI_CHARACTERS } from '../limits.js'
import { isRegistered, type RedirectUris } from './redirect-uris.js'

/** What the operations of the provider share. */
export interface Provider {
  readonly oidc: Services['oidc']
  /** The rows of signers of external tokens. */
  readonly signers: ReturnType<Services['entitiesOf']>
  /** wire: at the address of the APIs, whatever the address of the request is. */
  readonly issuer: string
  readonly redirects: RedirectUris
  readonly logoutRedirects: RedirectUris
  /** Logs an address to which a client may not return. */
  readonly noteUnregistered: (c: RequestContext, refused: UnregisteredUri) => void
}

export interface UnregisteredUri {
  readonly uri: string
  readonly clientId: string
  /** The one that lacks the address. */
  readonly setting: RedirectSetting
}

/** The settings of registered addresses, by the parameter that must be one of them. */
export const redirectSettings = {
  redirect_uri: 'OVERLAY_OIDC_REDIRECTS',
  post_logout_redirect_uri: 'OVERLAY_OIDC_LOGOUT_REDIRECTS',
} as const
export type RedirectSetting = (typeof redirectSettings)[keyof typeof redirectSettings]

/** Lines of one source are bounded. */
export function openUnregisteredLog(log: LineLog): Provider['noteUnregistered'] {
  const line = boundedLines(log, 'redirect URI not registered')
  return ({ env }, { uri, clientId, setting }) => {
    const sourceAddress = clientAddressOf(env.incoming.socket)
    const redirectUri = printable(uri.replace(/[?#].*$/s, '?…'), LOGGED_URI_CHARACTERS) // a query may contain secrets
    const { requestId } = env
    line(sourceOf(sourceAddress), { redirectUri, setting, clientId, requestId, sourceAddress })
  }
}

export const isClient = (id: string): boolean => CLIENTS.has(id)

export const mayRedirect = (uris: RedirectUris, uri: string): boolean =>
  uri.length <= MAX_URI_CHARACTERS && isRegistered(uris, uri)

/** Sends the browser on. The address may contain a code or the id of a login: no cache may keep it. */
export function redirect(c: RequestContext, location: string): Response {
  forbidStoring(c)
  c.env.outgoing.setHeader('referrer-policy', 'no-referrer')
  return write(c, 302, { location }, null)
}

type Members = Readonly<Record<string, string>>

/** A registered URI with further parameters. Empty ones are left out. */
export function withParameters(uri: string, members: Members, mark: '?' | '#' = '?'): string {
  const present = Object.entries(members).filter(([, value]) => value !== '')
  if (present.length === 0) return uri
  const separator = mark === '?' && uri.includes('?') ? '&' : mark
  return `${uri}${separator}${new URLSearchParams(present)}`
}
