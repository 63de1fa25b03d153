import { ca, referenceTo, timeText } from '@overlay/model'
import type { ForeignKind } from '@overlay/platform/kind-store'
import { type Ca, findCas } from '../store/cas.js'
import { findOf, type StoredEnrollment } from '../store/enrollments.js'
import { caLinks } from './ca.js'

/** What enrollments add to the members of others' kinds, a page at once. */
type View = NonNullable<ForeignKind['view']>

const identities: View = async (db, ids) => {
  const found = await findOf(db, 'identity_id', ids)
  const caIds = found.flatMap(({ caId }) => caId ?? [])
  const cas = new Map((await findCas(db, caIds)).map((row) => [row.id, row]))
  return ids.map((id) => {
    const own = found.filter(({ identityId }) => identityId === id)
    if (own.length === 0) return undefined
    return { enrollment: Object.fromEntries(own.map((one) => memberOf(one, cas.get(one.caId ?? '')))) }
  })
}

const memberOf = (
  { method, id, token, jwt, expiresAt }: StoredEnrollment,
  authority: Ca | undefined,
): [string, object] => [
  method,
  {
    id,
    token,
    jwt,
    expiresAt: timeText(expiresAt),
    ...(authority && {
      caId: authority.id,
      ca: { ...referenceTo(ca, authority.id, authority.name), _links: caLinks(authority) },
    }),
  },
]

const routers =
  (owner: 'edge_router_id' | 'transit_router_id'): View =>
  async (db, ids) => {
    const found = await findOf(db, owner, ids)
    return ids.map((id) => {
      const one = found.find(({ edgeRouterId, transitRouterId }) => id === (edgeRouterId ?? transitRouterId))
      return {
        enrollmentToken: one?.token ?? null,
        enrollmentJwt: one?.jwt ?? null,
        enrollmentCreatedAt: one ? timeText(one.createdAt) : null, // differs: when it was made, not the year 1
        enrollmentExpiresAt: one ? timeText(one.expiresAt) : null,
      }
    })
  }

export const views: Readonly<Record<string, ForeignKind>> = {
  identities: { view: identities },
  'edge-routers': { view: routers('edge_router_id') },
  'transit-routers': { view: routers('transit_router_id') },
}
