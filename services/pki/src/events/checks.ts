import {
  type Check,
  copies,
  type Followed,
  type Following,
  type History,
  heard,
  type Names,
  references,
  type Source,
} from '@overlay/platform'
import type { Logger } from 'pino'
import sql, { raw } from 'sql-template-tag'
import { endOfOwners } from '../store/enrollments.js'
import type { Grants } from '../store/grants.js'
import { identityEffects, sessionsEffects } from './effects.js'

export interface Checked {
  readonly history: History
  readonly names: Names
  readonly grants: Grants
  readonly sources: { readonly identity: Source; readonly sessions: Source }
  readonly followed: Followed & { readonly identity: Following; readonly sessions: Following }
  readonly log: Logger
}

/** Columns of enrollments, and whose ids they hold. */
const holders = {
  identity_id: 'identities',
  edge_router_id: 'edge-routers',
  transit_router_id: 'transit-routers',
}

/** What holds between this schema and others, besides what the database itself sees to. */
export function checksOf({ history, names, grants, sources, followed, log }: Checked): readonly Check[] {
  const grounds = { history, names, followed }
  return [
    heard(followed),
    // of identities there is nothing to compare: that an enrollment is wanted is told once
    copies(
      history,
      {
        source: sources.identity,
        following: followed.identity,
        ...identityEffects(grants),
        kinds: ['authenticators'],
      },
      log,
    ),
    copies(
      history,
      { source: sources.sessions, following: followed.sessions, ...sessionsEffects(grants) },
      log,
    ),
    ...Object.entries(holders).map(([column, kind]) =>
      references(grounds, {
        what: 'enrollment',
        from: sql`select id, ${raw(column)} as ref from enrollment where ${raw(column)} is not null`,
        to: [kind],
        repair: endOfOwners,
      }),
    ),
    references(grounds, {
      what: 'ended enrollment',
      from: sql`select id, owner_id as ref from ended_enrollment`,
      to: Object.values(holders),
      repair: endOfOwners,
    }),
  ]
}
