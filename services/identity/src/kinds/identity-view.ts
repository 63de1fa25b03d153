import { identity, identityType, type RowOf, referenceTo, timeText } from '@overlay/model'
import { decodeView, type Reading, type Seams, type Viewer } from '@overlay/platform/kind-store'
import type { Db } from '@overlay/platform/postgres'
import sql from 'sql-template-tag'
import { isDisabled } from '../domain/disabled.js'

/** What identities show of the tables beside theirs. */
export interface Joined {
  readonly hasApiSession: boolean
  readonly isMfaEnabled: boolean
  readonly authenticators:
    | readonly { id: string; method: string; username: string; fingerprint: string }[]
    | null
}

export const joined = {
  // not exists(): the planner would rather read all sessions once
  hasApiSession: sql`
    coalesce((select true from api_session s where s.identity_id = identity.id limit 1), false)`,
  isMfaEnabled: sql`
    coalesce((select f.is_verified from second_factor f where f.identity_id = identity.id), false)`,
  authenticators: sql`
    (select json_agg(json_build_object('id', a.id, 'method', a.method, 'username', a.username,
                                       'fingerprint', a.fingerprint) order by a.created_at, a.id)
       from authenticator a where a.identity_id = identity.id)`,
} satisfies Seams<typeof identity, Joined>['joined']

type Row = RowOf<typeof identity> & Joined

/** Who knows the members that are not ours: enrollments, and connections to routers. */
export interface Others {
  readonly pki: Viewer
  readonly sessions: Viewer
}

/** What an identity shows beside its columns, a page at once. Without the others there is no answer. */
export const identityView =
  ({ pki, sessions }: Others) =>
  async (_: Db, rows: readonly Row[], { context }: Reading): Promise<object[]> => {
    const request = { kind: identity.kind, ids: rows.map(({ id }) => id) }
    const [enrollments, connections] = await Promise.all([
      pki.view(request, context),
      sessions.view(request, context),
    ])
    const now = new Date()
    return rows.map((row, i) =>
      Object.assign(membersOf(row, now), decodeView(enrollments.json[i]), decodeView(connections.json[i])),
    )
  }

function membersOf(row: Row, now: Date): object {
  const { disabledAt, disabledUntil } = row
  return {
    type: referenceTo(identityType, row.type, row.type),
    typeId: row.type,
    disabled: isDisabled(row, now),
    ...(disabledAt && { disabledAt: timeText(disabledAt) }),
    ...(disabledUntil && { disabledUntil: timeText(disabledUntil) }),
    isMfaEnabled: row.isMfaEnabled,
    hasApiSession: row.hasApiSession,
    hasEdgeRouterConnection: false,
    authenticators: Object.fromEntries(
      (row.authenticators ?? []).map(({ id, method, username, fingerprint }) => [
        method,
        method === 'updb' ? { id, username } : { id, fingerprint },
      ]),
    ),
    enrollment: {},
  }
}
