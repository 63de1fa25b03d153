import type { Context, Positions } from '@overlay/rpc'
import { type Followed, isAtLeast } from '@overlay/store/change-log'
import type { Entities } from '../clients/services.js'
import { wrapData } from '../http/envelope.js'
import { type PreparedBody, prepareBody } from '../http/send.js'
import { IDENTITY_AGE_MS, IDENTITY_CACHE_BYTES } from '../limits.js'
import { type Gauged, openCache } from './cache.js'
import type { WritePositions } from './write-positions.js'

/** The answer to `GET /current-identity`, rendered once for each identity. */
export interface Identities {
  readonly gauged: Gauged
  self(identityId: string): Self | Promise<Self>
  drop(tag: string): void
  dropAll(): void
}

export interface Self {
  readonly answer: PreparedBody
  readonly tags: readonly string[]
  readonly loadedAtMs: number
  readonly positions: Positions
}

export interface IdentitiesOptions {
  readonly entities: Entities
  readonly writePositions: WritePositions
  /** By schema, the streams of all rows in the answer. */
  readonly followed: Readonly<Record<string, () => Followed>>
  readonly context: () => Context
  readonly maxBytes?: number
  readonly now?: () => number
}

export function openIdentities(options: IdentitiesOptions): Identities {
  const {
    entities,
    writePositions,
    followed,
    context,
    maxBytes = IDENTITY_CACHE_BYTES,
    now = Date.now,
  } = options
  const sources = Object.entries(followed)
  const cache = openCache<Self>(
    maxBytes,
    ({ tags }) => tags,
    ({ answer }) => 2 * answer.bytes.length + 500,
  )

  function isValid({ loadedAtMs, positions }: Self, at: number): boolean {
    if (at - loadedAtMs > IDENTITY_AGE_MS) return false
    const written = writePositions.positions()
    for (const [schema, source] of sources) {
      if (!source().isFresh()) return false
      const least = written[schema]
      if (!isAtLeast(source().positions()[schema], least) && !isAtLeast(positions[schema], least))
        return false
    }
    return true
  }

  async function load(id: string): Promise<Self> {
    const positions = writePositions.positions()
    const loadedAtMs = now()
    const request = { ref: { kind: 'identities', id }, perspective: undefined }
    const { json } = await entities.get(request, { ...context(), positions })
    return { ...rendered(json), loadedAtMs, positions }
  }

  return {
    gauged: cache.gauged,
    self(identityId) {
      const cached = cache.get(identityId)
      if (cached && isValid(cached, now())) return cached
      return cache.load(identityId, writePositions.positions(), () => load(identityId))
    },
    drop: cache.drop,
    dropAll: cache.dropAll,
  }
}

interface IdentityJson {
  readonly id: string
  readonly authenticators?: Readonly<Record<string, { readonly id: string } | null>>
  readonly enrollment?: Readonly<Record<string, { readonly id: string } | null>>
}

// wire: the ordinary identity, with other links; `meta` is null here
const links = { self: { href: './current-identity' }, mfa: { href: './current-identity/mfa' } }

function rendered(json: Buffer): Pick<Self, 'answer' | 'tags'> {
  const identity = JSON.parse(json.toString()) as IdentityJson
  const ids = (members: IdentityJson['enrollment']): string[] =>
    Object.values(members ?? {}).flatMap((member) => (member ? [member.id] : []))
  return {
    answer: prepareBody(wrapData({ ...identity, _links: links }, 'null')),
    tags: [
      `identities ${identity.id}`,
      ...ids(identity.authenticators).map((id) => `authenticators ${id}`),
      ...ids(identity.enrollment).map((id) => `enrollments ${id}`),
    ],
  }
}
