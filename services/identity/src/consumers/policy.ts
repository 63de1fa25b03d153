import { configType, service } from '@overlay/model'
import type { Effects } from '@overlay/platform/change-log'
import { deletedSince, type Names } from '@overlay/platform/kind-store'
import type { Change } from '@overlay/rpc'
import sql from 'sql-template-tag'
import { forgetHosting, hostedServices } from '../store/hosting.js'
import { forgetConfigTypes, keepConfigTypes, namedConfigTypes } from '../store/known-config-types.js'

/**
 * differs: a service that is deleted is removed from the hosting costs and precedences of identities. A config type is
 * removed from the API sessions that name it. Config types are locked before identities, as a login does.
 */
export const policyEffects = (names: Names): Effects => ({
  kinds: [service.kind, configType.kind],

  concerns: (change) => change.kind === configType.kind || isDeletion(change),

  async apply(tx, changes) {
    const last = [...new Map(changes.map((change) => [`${change.kind} ${change.id}`, change])).values()]
    await keepConfigTypes(tx, ofKind(configType.kind, last))
    const sessions = await forgetConfigTypes(tx, deletedIn(configType.kind, last))
    return [...sessions, ...(await forgetHosting(tx, deletedIn(service.kind, last)))]
  },

  async reload(tx, rows) {
    for await (const page of rows.pages(configType.kind)) await keepConfigTypes(tx, page)
    const types = sql`select id from known_config_type union select ref from (${namedConfigTypes}) as named`
    const sessions = await forgetConfigTypes(tx, await deletedSince(tx, names, configType.kind, rows, types))
    const services = sql`select distinct ref as id from (${hostedServices}) as hosted`
    return [
      ...sessions,
      ...(await forgetHosting(tx, await deletedSince(tx, names, service.kind, rows, services))),
    ]
  },
})

const isDeletion = ({ json }: Change): boolean => json.length === 0

const ofKind = (kind: string, changes: readonly Change[]): Change[] =>
  changes.filter((change) => change.kind === kind)

const deletedIn = (kind: string, changes: readonly Change[]): string[] =>
  ofKind(kind, changes)
    .filter(isDeletion)
    .map(({ id }) => id)
