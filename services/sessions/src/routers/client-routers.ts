import { routersForClients } from '@overlay/model'
import type { Position } from '@overlay/rpc'
import { isAtLeast } from '@overlay/store/change-log'
import { type ClientRouter, clientRouter } from '../domain/client-router.js'
import type { RouterFeatures } from '../domain/router-features.js'
import { evaluatingRouters } from './evaluating-routers.js'
import type { RouterDirectory } from './router-directory.js'
import type { Presence, RouterPresence } from './router-presence.js'

/** Edge routers as clients see them, from memory. */
export interface ClientRouterList {
  /** Those of these ids that exist; null: none. Undefined: memory may be older than this position of our change log. */
  of(ids: readonly string[], written: Position | undefined): readonly ClientRouter[] | null | undefined
  /** The connected ones of these ids that evaluate posture checks. */
  evaluating(ids: readonly string[]): readonly string[]
  /**
   * Of each of these ids that clients may use, as it was connected the last time. Undefined: it is enrolled and has not
   * been seen. Without these while replicas of 0.1.0 have routers.
   */
  lastFeaturesOf(ids: readonly string[]): readonly (RouterFeatures | undefined)[]
}

export function openClientRouterList(
  directory: Pick<RouterDirectory, 'get' | 'position' | 'isFresh'>,
  presence: Pick<RouterPresence, 'of' | 'lastFeatures' | 'hasFormerReplicas'>,
): ClientRouterList {
  function show(id: string): ClientRouter[] {
    const router = directory.get(id)
    if (!router?.isEdge) return []
    const best = bestOf(presence.of(id))
    const { name, cost, noTraversal, disabled } = router
    const { hostname = null, supportedProtocols = null, syncStatus = null } = best ?? {}
    const row = { id, name, cost, noTraversal, disabled, isOnline: best !== undefined }
    return [clientRouter({ ...row, hostname, supportedProtocols, syncStatus })]
  }
  return {
    of(ids, written) {
      if (!directory.isFresh() || !isAtLeast(directory.position(), written)) return undefined
      return routersForClients(ids.flatMap(show))
    },
    evaluating: (ids) => evaluatingRouters(presence, ids),
    lastFeaturesOf(ids) {
      const usable = ids.map(directory.get).filter((one) => one?.disabled === false)
      const found = usable.flatMap((router) => {
        const features = router && presence.lastFeatures(router.id)
        return features || router?.fingerprint !== undefined ? [features] : []
      })
      // a signed token, which such a replica refuses, is for routers that are known to need it
      return presence.hasFormerReplicas() ? found.filter((one) => one !== undefined) : found
    },
  }
}

/** The connection to the replica that has synchronized the router, else the newest; `connections`: the newest first. */
const bestOf = (connections: readonly Presence[]): Presence | undefined =>
  connections.find(({ syncStatus }) => syncStatus === 'SYNC_DONE') ?? connections[0]
