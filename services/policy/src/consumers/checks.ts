import { type Entity, kinds, snake } from '@overlay/model'
import type { ChangeLog, RowChange, Source } from '@overlay/platform/change-log'
import { type Names, tableOf } from '@overlay/platform/kind-store'
import { type Check, copies, type Followed, heard, references } from '@overlay/platform/maintenance'
import type { Tx } from '@overlay/platform/postgres'
import type { Logger } from 'pino'
import sql, { raw } from 'sql-template-tag'
import { takeFromServices } from '../kinds/config.js'
import { dropRoles, policies } from '../store/drop-role.js'
import { forgetPosture } from '../store/posture-data.js'
import { deleteServiceConfigs } from '../store/service-config.js'
import { forgetUpdates } from '../store/service-updates.js'
import { notePassed, PASSING } from './passed-factors.js'
import { removeSystemPolicies, routerEffects } from './sessions.js'

export interface Checked {
  readonly changeLog: ChangeLog
  readonly names: Names
  readonly sources: { readonly identity: Source; readonly sessions: Source }
  readonly followed: Followed
  readonly log: Logger
}

/** What holds between this schema and others, and within lists of ids, which the database does not look into. */
export function checksOf({ changeLog, names, sources, followed, log }: Checked): readonly Check[] {
  const grounds = { changeLog, names, followed }
  return [
    heard(followed),
    copies(changeLog, { source: sources.sessions, followed, ...routerEffects(names) }, log),
    // codes of second factors that were given
    copies(changeLog, { source: sources.identity, followed, kinds: [PASSING], apply: notePassed }, log),
    ...['posture_data', 'failed_request'].map((table) =>
      references(grounds, {
        what: table.replace('_', ' '),
        from: sql`select distinct identity_id as id, identity_id as ref from ${raw(table)}`,
        to: ['identities'],
        repair: forgetPosture,
      }),
    ),
    references(grounds, {
      what: 'system edgeRouterPolicy',
      from: sql`select id, id as ref from edge_router_policy where is_system`,
      to: ['edge-routers'],
      repair: (tx, gone) => removeSystemPolicies(tx, sql`id = any(${gone})`),
    }),
    ...policies.flatMap((policy) => roleLists(policy).map((list) => references(grounds, list))),
    references(grounds, {
      what: 'service',
      from: sql`select id, config as ref from service, unnest(configs) as config`,
      to: ['configs'],
      repair: takeAllFromServices,
    }),
    // wire: the service of such a config need not exist
    references(grounds, {
      what: 'config',
      from: sql`select config_id as id, identity_id as ref from service_config`,
      to: ['identities'],
      repair: (tx, gone) => deleteServiceConfigs(tx, sql`identity_id = any(${gone})`),
    }),
    references(grounds, {
      what: 'service-updates time',
      // they are taken away at leisure
      from: sql`
        select identity_id as id, identity_id as ref from service_update
         where changed_at < now() - interval '1 minute'`,
      to: ['identities'],
      repair: forgetUpdates,
    }),
  ]
}

/**
 * Who is named by id in the role lists of a kind of policies. The system policy of a router names the router and its
 * identity, which may come later or go earlier: it is compared with the router.
 */
const roleLists = (policy: Entity) =>
  Object.entries(policy.fields).flatMap(([name, { rolesOf }]) => {
    if (rolesOf === undefined || !kinds.has(rolesOf)) return []
    return {
      what: policy.singular,
      from: sql`
        select id, substr(role, 2) as ref from ${tableOf(policy)}, unnest(${raw(snake(name))}) as role
         where role like '@%' and not (is_system and id = substr(role, 2))`,
      to: [rolesOf],
      repair: (tx: Tx, gone: readonly string[]) => dropRoles(tx, rolesOf, gone),
    }
  })

async function takeAllFromServices(tx: Tx, gone: readonly string[]): Promise<RowChange[]> {
  const changes: RowChange[] = []
  for (const id of gone) await takeFromServices(tx, id, { also: (change) => void changes.push(change) })
  return changes
}
