import { withoutPrivateKeys } from '@overlay/rpc'

const SECRET_WORDS = new Set([
  ...['password', 'passwords', 'passphrase', 'secret', 'secrets', 'token', 'tokens', 'jwt', 'key', 'keys'],
  ...['salt', 'hash', 'authorization', 'cookie', 'credentials', 'codes'],
])
const SECRET_KEYS = new Set(['zt-session', 'set-cookie', 'keypem'])
const DEEPEST = 8

const REDACTED = '[redacted]'

/** A copy without secrets: values whose key is named like a secret, and passwords in URLs. */
export function redact(fields: object): Record<string, unknown> {
  return members(fields, 0)
}

function members(fields: object, depth: number): Record<string, unknown> {
  const copy: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(fields))
    copy[key] = isSecretName(key) ? REDACTED : clean(value, depth)
  return copy
}

function clean(value: unknown, depth: number): unknown {
  if (typeof value === 'string') return cleanText(value)
  if (typeof value !== 'object' || value === null) return value
  if (value instanceof Error || value instanceof Date) return value // errors have their serializer
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (depth >= DEEPEST) return '[deeper]'
  if (Array.isArray(value)) return value.map((element) => clean(element, depth + 1))
  if (value instanceof Map) return members(Object.fromEntries(value), depth + 1)
  if (value instanceof Set) return [...value].map((element) => clean(element, depth + 1))
  return members(value, depth + 1)
}

/** Without the passwords of URLs and without private keys. */
export const cleanText = (text: string): string =>
  withoutPrivateKeys(text.includes('://') ? text.replace(URL_PASSWORD, '$1***@') : text)

const URL_PASSWORD = /(:\/\/[^\s/:@]*:)[^\s/@]*@/g

/** By its last word: `newPassword` and `private_key` are secret, `keyId` and `tokenType` are not. */
export function isSecretName(key: string): boolean {
  const cached = verdicts.get(key)
  if (cached !== undefined) return cached
  const plain = key.replace(/[_-]?pem$/i, '') // the PEM of a key is the key
  const last =
    plain
      .split(/[^a-zA-Z]+|(?<=[a-z])(?=[A-Z])/)
      .filter(Boolean)
      .at(-1)
      ?.toLowerCase() ?? ''
  const verdict = SECRET_WORDS.has(last) || SECRET_KEYS.has(key.toLowerCase())
  if (verdicts.size < 10_000) verdicts.set(key, verdict) // keys may come from outside
  return verdict
}

const verdicts = new Map<string, boolean>()
