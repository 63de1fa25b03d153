import { createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import type { Context, Methods, PkiServiceService, Positions } from '@overlay/rpc'
import { coalesced } from '../async/serial.js'
import { TOKEN_KEYS_REFETCH_MS } from '../limits.js'

/** The published keys of tokens. */
export interface TokenKeys {
  /** The JWKS document, as pki publishes it. */
  document(): Promise<Buffer>
  /** The key that verifies tokens with this key id. Undefined: there is none. */
  find(id: string): KeyObject | undefined | Promise<KeyObject | undefined>
  /** The keys may have changed. @param positions the changes that the answer of pki must contain */
  reload(positions?: Positions): void
}

export interface TokenKeysOptions {
  readonly pki: Pick<Methods<PkiServiceService>, 'getTokenKeys'>
  /** Of a read that several callers may wait for. */
  readonly context: () => Context
  readonly log: { warn(facts: object, message: string): void }
  /** The key is not published any more: its tokens are invalid. */
  readonly onRemoved?: (id: string) => void
  /** Age at which keys are read again. Absent: the caller follows pki and calls `reload`. */
  readonly maxAgeMs?: number
  /** Milliseconds of a clock that only advances. */
  readonly now?: () => number
}

interface Loaded {
  readonly document: Buffer
  readonly keys: ReadonlyMap<string, KeyObject>
}

/**
 * Caches the keys. They are read when first needed, when they are stale, and for an unknown key id at most once a second:
 * the next key is published before it signs, so unknown ids are wrong except after an emergency. While pki does not
 * answer, the last keys remain in use.
 */
export function openTokenKeys(options: TokenKeysOptions): TokenKeys {
  const { pki, context, log, onRemoved, maxAgeMs = Number.POSITIVE_INFINITY } = options
  const { now = () => performance.now() } = options
  let loaded: Loaded | undefined
  let hasChanged = false
  let seen: Positions = {}
  let loadedAt = Number.NEGATIVE_INFINITY
  let triedAt = Number.NEGATIVE_INFINITY

  const load = coalesced(async (): Promise<Loaded> => {
    triedAt = now()
    hasChanged = false
    try {
      const own = context()
      const reading = { ...own, positions: { ...own.positions, ...seen } }
      const { jwks, keyIds } = await pki.getTokenKeys({}, reading)
      const before = loaded
      loaded = { document: jwks, keys: keysIn(jwks, keyIds) }
      loadedAt = triedAt
      for (const id of before?.keys.keys() ?? []) if (!loaded.keys.has(id)) onRemoved?.(id)
      return loaded
    } catch (err) {
      hasChanged = true
      throw err
    }
  })

  async function loadOrKeep(): Promise<Loaded> {
    const last = loaded
    if (!last) return load()
    try {
      return await load()
    } catch (err) {
      log.warn({ err }, 'token keys not read, using the last ones')
      return last
    }
  }

  const isStale = (): boolean => hasChanged || now() - loadedAt >= maxAgeMs
  const mayRetry = (): boolean => now() - triedAt >= TOKEN_KEYS_REFETCH_MS

  return {
    async document() {
      return (isStale() || !loaded ? await loadOrKeep() : loaded).document
    },
    find(id) {
      const key = loaded?.keys.get(id)
      if (key && !isStale()) return key
      if (loaded && !mayRetry()) return key
      return loadOrKeep().then(({ keys }) => keys.get(id))
    },
    reload(positions = {}) {
      seen = positions
      hasChanged = true
      triedAt = Number.NEGATIVE_INFINITY
      void loadOrKeep().catch((err: unknown) => log.warn({ err }, 'token keys not read'))
    },
  }
}

function keysIn(jwks: Buffer, keyIds: readonly string[]): ReadonlyMap<string, KeyObject> {
  const { keys } = JSON.parse(jwks.toString()) as { readonly keys: readonly JsonWebKey[] }
  const found = new Map<string, KeyObject>()
  for (const jwk of keys)
    if (typeof jwk.kid === 'string' && keyIds.includes(jwk.kid))
      found.set(jwk.kid, createPublicKey({ key: jwk, format: 'jwk' }))
  return found
}
