import type { ApiSession } from './api-session.js'

/** Some routers. */
export interface Routers {
  has(routerId: string): boolean
}

/** The routers that policies grant the same identities, and these identities. */
export interface Audience extends Routers {
  readonly holders: ReadonlySet<Holder>
}

/** An identity with API sessions that have, or had, a certificate. */
export interface Holder {
  readonly identityId: string
  readonly sessions: ReadonlySet<ApiSession>
  /** Undefined: not known yet. */
  readonly audience: Audience | undefined
}

/** Ids of routers, or all routers. */
export type GrantedRouters = readonly string[] | 'all'

interface OwnAudience extends Audience {
  readonly key: string
  readonly holders: Set<OwnHolder>
}

interface OwnHolder extends Holder {
  readonly sessions: Set<ApiSession>
  audience: OwnAudience | undefined
}

/** Which routers may have which API sessions. Identities with the same routers share a set. */
export function openAudiences() {
  const holders = new Map<string, OwnHolder>()
  const audiences = new Map<string, OwnAudience>()
  const byList = new WeakMap<readonly string[], OwnAudience>() // identities of one answer share lists of routers

  function leave(holder: OwnHolder): void {
    const { audience } = holder
    if (audience?.holders.delete(holder) && audience.holders.size === 0) audiences.delete(audience.key)
  }
  function audienceFor(routers: GrantedRouters): OwnAudience {
    const known = routers === 'all' ? undefined : byList.get(routers)
    const key = known?.key ?? (routers === 'all' ? 'all' : `of ${routers.join()}`)
    const audience = audiences.get(key) ?? known ?? newAudience(key, routers)
    audiences.set(key, audience)
    if (routers !== 'all') byList.set(routers, audience)
    return audience
  }
  return {
    of: (identityId: string): Holder | undefined => holders.get(identityId),
    holders: (): Iterable<Holder> => holders.values(),
    /** Those with this router, also those that are added during the iteration. */
    *ofRouter(routerId: string): Iterable<Audience> {
      for (const audience of audiences.values()) if (audience.has(routerId)) yield audience
    },
    add(session: ApiSession): Holder {
      const { identityId } = session
      const holder = holders.get(identityId) ?? { identityId, sessions: new Set(), audience: undefined }
      holders.set(identityId, holder)
      holder.sessions.add(session)
      return holder
    },
    /** Returns its holder; undefined: it has none. A holder without API sessions is removed. */
    remove(session: ApiSession): Holder | undefined {
      const holder = holders.get(session.identityId)
      if (!holder?.sessions.delete(session)) return undefined
      if (holder.sessions.size === 0) {
        leave(holder)
        holders.delete(holder.identityId)
      }
      return holder
    },
    /** False: the holder has been removed. */
    place({ identityId, sessions }: Holder, routers: GrantedRouters): boolean {
      const holder = holders.get(identityId)
      if (holder?.sessions !== sessions) return false
      const audience = audienceFor(routers)
      if (audience === holder.audience) return true
      leave(holder)
      audience.holders.add(holder)
      holder.audience = audience
      return true
    },
    /** False: the identity of the API session is known not to be granted this router. */
    admits(routerId: string, { identityId }: ApiSession): boolean {
      const audience = holders.get(identityId)?.audience
      return !audience || audience.has(routerId)
    },
    /** False: the identity has no API session, or none for the router. */
    mayConnect(routerId: string, identityId: string): boolean {
      const holder = holders.get(identityId)
      return holder !== undefined && (!holder.audience || holder.audience.has(routerId))
    },
  }
}

export type Audiences = ReturnType<typeof openAudiences>

function newAudience(key: string, routers: GrantedRouters): OwnAudience {
  const ids = new Set(routers === 'all' ? [] : routers)
  return { key, has: routers === 'all' ? () => true : (id) => ids.has(id), holders: new Set() }
}
