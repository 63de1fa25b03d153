import { resolve } from 'node:path'
import type { ConnectionOptions } from 'node:tls'
import { clientContext, type TlsPlace } from '@overlay/process/client-tls'
import type pg from 'pg'
import type { Logger } from 'pino'

/** How a connection is protected, as libpq defines its `sslmode`. */
type SslMode = 'disable' | 'require' | 'verify-ca' | 'verify-full'

const modes: readonly SslMode[] = ['disable', 'require', 'verify-ca', 'verify-full']

const MODE = 'sslmode'
const DIRECTORY = 'ssldirectory'

/** Parameters of the URL that the driver must not interpret itself. */
const parameters = [MODE, 'sslrootcert', 'sslcert', 'sslkey', DIRECTORY, 'ssl', 'uselibpqcompat']

/**
 * The same URL for connections that take their files from a directory (`ca.crt`; `tls.crt` and `tls.key` if the server
 * requires a certificate), and verify the server unless the URL has another `sslmode`.
 */
export function withTlsDirectory(url: string, directory: string | undefined): string {
  if (directory === undefined) return url
  const parsed = new URL(url)
  parsed.searchParams.set(DIRECTORY, resolve(directory))
  return parsed.href
}

/** What the driver needs for a URL. Fails if the URL or its files are unusable. */
export function connectionOf(url: string, log?: Logger): pg.ClientConfig {
  const parsed = new URL(url)
  const { mode, place } = tlsOf(parsed.searchParams)
  for (const name of parameters) parsed.searchParams.delete(name)
  const isSocket = parsed.searchParams.get('host')?.startsWith('/') || /^%2f/i.test(parsed.hostname)
  const ssl = mode === 'disable' || isSocket ? false : tlsOptions(mode, place, log)
  return { connectionString: parsed.href, ssl }
}

/** Why a connection by this URL proves nothing about the server. Undefined: it does, or there is no TLS. */
export function tlsWarning(url: string): string | undefined {
  const { mode, place } = tlsOf(new URL(url).searchParams)
  if (mode !== 'require' || hasAuthorities(place)) return undefined
  return 'sslmode=require without an authority encrypts the connections to the database and does not verify the server: set OVERLAY_DATABASE_TLS or sslrootcert, or use sslmode=verify-full'
}

interface Tls {
  readonly mode: SslMode
  readonly place: TlsPlace
}

function tlsOf(params: URLSearchParams): Tls {
  const given = (name: string): string | undefined => params.get(name) || undefined
  const root = given('sslrootcert')
  const isPublic = root === 'system'
  const place: TlsPlace = {
    peer: 'database',
    directory: given(DIRECTORY),
    authorities: isPublic ? undefined : root,
    isPublic,
    certificate: given('sslcert'),
    key: given('sslkey'),
  }
  const hasFiles = [DIRECTORY, 'sslrootcert', 'sslcert', 'sslkey'].some((name) => given(name) !== undefined)
  const mode = modeOf(given(MODE) ?? switches[given('ssl') ?? ''] ?? (hasFiles ? 'verify-full' : undefined))
  if (isPublic && mode !== 'verify-full')
    throw new Error(
      'sslrootcert=system requires sslmode=verify-full, because anybody can get a certificate of a public authority: correct DATABASE_URL',
    )
  if (mode === 'verify-ca' && !hasAuthorities(place))
    throw new Error(
      'sslmode=verify-ca requires an authority of your own: set OVERLAY_DATABASE_TLS, add sslrootcert=FILE to DATABASE_URL, or use sslmode=verify-full',
    )
  return { mode, place }
}

/** Of the driver. */
const switches: Readonly<Record<string, SslMode>> = {
  true: 'verify-full',
  '1': 'verify-full',
  false: 'disable',
  '0': 'disable',
}

const hasAuthorities = ({ directory, authorities, isPublic }: TlsPlace): boolean =>
  authorities !== undefined || (directory !== undefined && !isPublic)

function modeOf(given: string | undefined): SslMode {
  const text = given ?? process.env.PGSSLMODE ?? ''
  if (text === '') return 'disable'
  const mode = modes.find((mode) => mode === text)
  if (mode === undefined)
    throw new Error(
      `sslmode=${text} is not possible: use ${modes.join(', ')} in DATABASE_URL${given === undefined ? ' or PGSSLMODE' : ''}; with prefer and allow, an attacker could switch TLS off`,
    )
  return mode
}

/** The driver copies the members for each connection. */
function tlsOptions(mode: SslMode, place: TlsPlace, log: Logger | undefined): ConnectionOptions {
  const context = () => clientContext(place, log)
  context() // unusable files are an error now, and not of a later connection
  return {
    get secureContext() {
      return context()
    },
    // as libpq: the name is checked by verify-full only, and the authority by require only if there is one
    ...(mode !== 'verify-full' && { checkServerIdentity: () => undefined }),
    ...(mode === 'require' && !hasAuthorities(place) && { rejectUnauthorized: false }),
  }
}
