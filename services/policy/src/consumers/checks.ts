import { type CheckDeps as AnyCheckDeps, type Check, references } from '@overlay/maintenance'
import type { Source } from '@overlay/store/change-log'
import { tableOf } from '@overlay/store/kind-store'
import sql, { raw } from 'sql-template-tag'
import { dropConfigs } from '../store/config.js'
import { dropRoles, roleColumns } from '../store/roles.js'

export interface CheckDeps extends AnyCheckDeps {
  readonly sources: { readonly identity: Source; readonly sessions: Source }
}

/** The ids in columns of this schema's own rows, which the database does not check. */
export const ownChecks = (deps: CheckDeps): readonly Check[] => [
  ...roleReferences(deps, 'services'),
  ...roleReferences(deps, 'posture-checks'),
  references(deps, {
    what: 'service',
    from: sql`select id, config as ref from service, unnest(configs) as config`,
    to: ['configs'],
    repair: dropConfigs,
  }),
]

/**
 * The ids of a kind in the role lists of policies. The system policy of a router names the router and its identity, which
 * may be created later or deleted earlier: it is compared with the router instead.
 */
export const roleReferences = (deps: CheckDeps, kind: string): readonly Check[] =>
  roleColumns
    .filter(({ rolesOf }) => rolesOf === kind)
    .map(({ policy, column }) =>
      references(deps, {
        what: policy.singular,
        from: sql`
          select id, substr(role, 2) as ref from ${tableOf(policy)}, unnest(${raw(column)}) as role
           where role like '@%' and not (is_system and id = substr(role, 2))`,
        to: [kind],
        repair: (tx, ids) => dropRoles(tx, kind, ids),
      }),
    )
