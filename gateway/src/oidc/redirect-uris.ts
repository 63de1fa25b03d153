/** Decides whether a URI of a request is one of the registered ones. */
export type RedirectUris = readonly RedirectUri[]

export interface RedirectUri {
  readonly pattern: string
  matches(uri: string): boolean
}

const hosts = ['https://127.0.0.1:*', 'http://127.0.0.1:*', 'https://localhost:*', 'http://localhost:*']

/** The URIs of clients on the user's own machine, with the last part of the path. */
export const localUris = (page: 'callback' | 'logout'): string =>
  ['openziti:/', ...hosts].map((start) => `${start}/auth/${page}`).join()

/**
 * Reads registered URIs, separated by commas. `*` in place of the port stands for any port.
 * @throws Error that says what is wrong
 */
export function redirectUris(text: string): RedirectUris {
  return text.split(',').map((part) => {
    const pattern = part.trim()
    checkPattern(pattern)
    const [before = '', after] = pattern.split(':*')
    if (after === undefined) return { pattern, matches: (uri) => uri === pattern }
    return { pattern, matches: (uri) => matchesPort(uri, `${before}:`, after) }
  })
}

export const isRegistered = (uris: RedirectUris, uri: string): boolean =>
  uris.some((registered) => registered.matches(uri))

/** differs: every character is compared, except the digits of the port. No spelling of another address is equal. */
function matchesPort(uri: string, before: string, after: string): boolean {
  if (!uri.startsWith(before) || !uri.endsWith(after)) return false
  const port = uri.slice(before.length, uri.length - after.length)
  return /^[1-9]\d{0,4}$/.test(port) && Number(port) <= 65_535
}

/** Schemes whose addresses run or show what the query contains. */
const unsafeSchemes = new Set([
  'javascript:',
  'data:',
  'vbscript:',
  'file:',
  'blob:',
  'about:',
  'view-source:',
])

function checkPattern(pattern: string): void {
  const plain = pattern.replace(':*', ':1')
  if (!/^[\x21-\x7e]+$/.test(pattern) || plain.includes('*') || !URL.canParse(plain))
    throw new Error('must be URIs, separated by commas, whose port may be *')
  const { protocol, username, password, hash } = new URL(plain)
  if (unsafeSchemes.has(protocol)) throw new Error(`must not have the scheme ${protocol.slice(0, -1)}`)
  if (username !== '' || password !== '' || hash !== '' || pattern.includes('#'))
    throw new Error('must not contain user names and fragments')
  if (plain !== pattern && !/^[a-z][a-z0-9+.-]*:\/\/[^/?]+:\*([/?]|$)/i.test(pattern))
    throw new Error('must have * only in place of the port')
}
