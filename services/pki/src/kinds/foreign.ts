import { ca, type edgeRouter, type identity, referenceTo, timeText } from '@overlay/model'
import type { ForeignKind, ForeignViews } from '@overlay/store/kind-store'
import type { EnrollmentIssuer } from '../keys/enrollment-issuer.js'
import { type Ca, findCas } from '../store/cas.js'
import { findByOwners, type StoredEnrollment } from '../store/enrollments.js'
import { caLinks } from './ca.js'

/** What enrollments add to the members of identities and routers. */
const identities = (issuer: EnrollmentIssuer): ForeignKind => ({
  async view(db, ids): Promise<ForeignViews<typeof identity>> {
    const enrollments = await issuer.signed(await findByOwners(db, 'identities', ids))
    const caIds = enrollments.flatMap(({ caId }) => caId ?? [])
    const cas = new Map((await findCas(db, caIds)).map((row) => [row.id, row]))
    return ids.map((id) => {
      const own = enrollments.filter(({ identityId }) => identityId === id)
      if (own.length === 0) return undefined
      return { enrollment: Object.fromEntries(own.map((one) => [one.method, shown(one, cas)])) }
    })
  },
})

type SignedEnrollment = StoredEnrollment & { readonly jwt: string }

function shown({ id, token, jwt, expiresAt, caId }: SignedEnrollment, cas: ReadonlyMap<string, Ca>) {
  const authority = cas.get(caId ?? '')
  return {
    id,
    token,
    jwt,
    expiresAt: timeText(expiresAt),
    ...(authority && {
      caId: authority.id,
      ca: { ...referenceTo(ca, authority.id, authority.name), _links: caLinks(authority) },
    }),
  }
}

const routers = (kind: 'edge-routers' | 'transit-routers', issuer: EnrollmentIssuer): ForeignKind => ({
  async view(db, ids): Promise<ForeignViews<typeof edgeRouter>> {
    const enrollments = await issuer.signed(await findByOwners(db, kind, ids))
    return ids.map((id) => {
      const own = enrollments.find(
        ({ edgeRouterId, transitRouterId }) => id === (edgeRouterId ?? transitRouterId),
      )
      return {
        enrollmentToken: own?.token ?? null,
        enrollmentJwt: own?.jwt ?? null,
        enrollmentCreatedAt: own ? timeText(own.createdAt) : null, // differs: when it was created, not the year 1
        enrollmentExpiresAt: own ? timeText(own.expiresAt) : null,
      }
    })
  },
})

export const foreign = (issuer: EnrollmentIssuer): Readonly<Record<string, ForeignKind>> => ({
  identities: identities(issuer),
  'edge-routers': routers('edge-routers', issuer),
  'transit-routers': routers('transit-routers', issuer),
})
