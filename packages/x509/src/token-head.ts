import { MAX_TOKEN_CHARACTERS, TOKEN_TEXT_CHARACTERS } from './limits.js'

/** What a signed token says of itself. Nothing of it is verified. */
export interface TokenHead<Algorithm extends string> {
  readonly algorithm: Algorithm
  readonly kid: string
  readonly claims: Readonly<Record<string, unknown>>
}

/** The text is no signed token, or one that no key may verify. The message contains no values of the token. */
export class TokenHeadError extends Error {
  override readonly name = 'TokenHeadError'

  constructor(
    readonly reason: 'too long' | 'malformed' | 'unsafe',
    message: string,
  ) {
    super(message)
  }
}

/** Members that bring a key, name where to find one, or change how the token is read. */
const unsafeMembers = ['jwk', 'jku', 'x5c', 'x5u', 'crit', 'b64', 'enc', 'zip']
const compact = /^([\w-]+)\.([\w-]+)\.([\w-]+)$/
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * Reads a compact JWS before any key is looked up. Only these algorithms are allowed.
 * @throws TokenHeadError
 */
export function readTokenHead<Algorithm extends string>(
  token: string,
  algorithms: readonly Algorithm[],
): TokenHead<Algorithm> {
  if (token.length > MAX_TOKEN_CHARACTERS)
    throw new TokenHeadError('too long', `it is longer than ${MAX_TOKEN_CHARACTERS} characters`)
  const [, header = '', payload = ''] = compact.exec(token) ?? []
  if (payload === '') throw malformed('it is not a compact JWS')
  const { alg, kid, ...others } = objectIn(header, 'header')
  const unsafe = unsafeMembers.find((name) => Object.hasOwn(others, name))
  if (unsafe !== undefined) throw new TokenHeadError('unsafe', `its header has the member ${unsafe}`)
  const algorithm = algorithms.find((one) => one === alg)
  if (algorithm === undefined) throw new TokenHeadError('unsafe', 'its algorithm is not allowed')
  if (!isTokenText(kid)) throw malformed('kid is not a text')
  return { algorithm, kid, claims: objectIn(payload, 'payload') }
}

const malformed = (message: string): TokenHeadError => new TokenHeadError('malformed', message)

function objectIn(part: string, what: string): Readonly<Record<string, unknown>> {
  let value: unknown
  try {
    value = JSON.parse(utf8.decode(Buffer.from(part, 'base64url')))
  } catch {
    throw malformed(`its ${what} is not JSON`)
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw malformed(`its ${what} is not an object`)
  return value as Record<string, unknown>
}

/** A text of reasonable length that a database can store. */
export const isTokenText = (value: unknown): value is string =>
  typeof value === 'string' &&
  value !== '' &&
  value.length <= TOKEN_TEXT_CHARACTERS &&
  !/[\p{Cc}\p{Cs}]/u.test(value)
