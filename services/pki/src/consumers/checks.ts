import type { ChangeLog, Source } from '@overlay/platform/change-log'
import type { Names } from '@overlay/platform/kind-store'
import { type Check, copies, type Followed, heard, references } from '@overlay/platform/maintenance'
import type { Tx } from '@overlay/platform/postgres'
import type { Logger } from 'pino'
import sql from 'sql-template-tag'
import type { Grants } from '../keys/enrollment-issuer.js'
import { endOfOwners, ownerColumns, ownerKinds } from '../store/enrollments.js'
import { identityEffects, sessionsEffects } from './identity.js'

export interface Checked {
  readonly changeLog: ChangeLog
  readonly names: Names
  readonly grants: Grants
  readonly sources: { readonly identity: Source; readonly sessions: Source }
  readonly followed: Followed
  readonly log: Logger
}

/** What holds between this schema and others, besides what the database itself sees to. */
export function checksOf({ changeLog, names, grants, sources, followed, log }: Checked): readonly Check[] {
  const grounds = { changeLog, names, followed }
  return [
    heard(followed),
    // of identities there is nothing to compare: that an enrollment is wanted is told once
    copies(
      changeLog,
      {
        source: sources.identity,
        followed,
        ...identityEffects(grants, names),
        kinds: ['authenticators'],
      },
      log,
    ),
    copies(changeLog, { source: sources.sessions, followed, ...sessionsEffects(grants, names) }, log),
    ...ownerKinds.flatMap((kind) => {
      const column = ownerColumns[kind]
      const repair = (tx: Tx, ids: readonly string[]) => endOfOwners(tx, kind, ids)
      return [
        references(grounds, {
          what: 'enrollment',
          from: sql`select id, ${column} as ref from enrollment where ${column} is not null`,
          to: [kind],
          repair,
        }),
        references(grounds, {
          what: 'ended enrollment',
          from: sql`select id, owner_id as ref from ended_enrollment where owner_kind = ${kind}`,
          to: [kind],
          repair,
        }),
      ]
    }),
    references(grounds, {
      what: 'ended enrollment',
      from: sql`select id, owner_id as ref from ended_enrollment where owner_kind is null`,
      to: ownerKinds,
      repair: (tx, ids) => endOfOwners(tx, 'identities', ids),
    }),
  ]
}
