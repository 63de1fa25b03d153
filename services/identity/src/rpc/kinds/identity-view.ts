import { authPolicy, identity, identityType, type RowOf, referenceTo, timeText } from '@overlay/model'
import type { Db, Reading, Viewer } from '@overlay/platform'
import sql from 'sql-template-tag'
import { isDisabled } from '../../domain/disabled.js'

type Row = RowOf<typeof identity>

interface Shown {
  readonly id: string
  readonly hasApiSession: boolean
  readonly isMfaEnabled: boolean
  readonly policyName: string
  readonly authenticators: readonly { id: string; method: string; username: string; fingerprint: string }[]
}

/** Who knows the members that are not ours: enrollments, and connections to routers. */
export interface Others {
  readonly pki: Viewer
  readonly sessions: Viewer
}

/** What an identity shows beside its columns, a page at once. Without the others there is no answer. */
export const identityView =
  ({ pki, sessions }: Others) =>
  async (db: Db, rows: readonly Row[], { context }: Reading): Promise<object[]> => {
    const ids = rows.map(({ id }) => id)
    const request = { kind: identity.kind, ids }
    const [own, enrollments, connections] = await Promise.all([
      shownOf(db, ids),
      pki.view(request, context),
      sessions.view(request, context),
    ])
    const now = new Date()
    return rows.map((row, i) => ({
      ...membersOf(row, own.get(row.id), now),
      ...parsed(enrollments.json[i]),
      ...parsed(connections.json[i]),
    }))
  }

const parsed = (json: Uint8Array | undefined): object =>
  json && json.length > 0 ? (JSON.parse(Buffer.from(json).toString()) as object) : {}

function membersOf(row: Row, own: Shown | undefined, now: Date): object {
  const { disabledAt, disabledUntil } = row
  return {
    type: referenceTo(identityType, row.type, row.type),
    typeId: row.type,
    authPolicy: referenceTo(authPolicy, row.authPolicyId, own?.policyName),
    disabled: isDisabled(row, now),
    ...(disabledAt && { disabledAt: timeText(disabledAt) }),
    ...(disabledUntil && { disabledUntil: timeText(disabledUntil) }),
    isMfaEnabled: own?.isMfaEnabled ?? false,
    hasApiSession: own?.hasApiSession ?? false,
    hasEdgeRouterConnection: false,
    authenticators: Object.fromEntries(
      (own?.authenticators ?? []).map(({ id, method, username, fingerprint }) => [
        method,
        method === 'updb' ? { id, username } : { id, fingerprint },
      ]),
    ),
    enrollment: {},
  }
}

async function shownOf(db: Db, ids: readonly string[]): Promise<ReadonlyMap<string, Shown>> {
  const { rows } = await db.query<Shown>(
    sql`
    select i.id, p.name as "policyName",
           exists (select from api_session s where s.identity_id = i.id) as "hasApiSession",
           exists (select from second_factor f where f.identity_id = i.id and f.is_verified) as "isMfaEnabled",
           array(select json_build_object('id', a.id, 'method', a.method, 'username', a.username,
                                          'fingerprint', a.fingerprint)
                   from authenticator a where a.identity_id = i.id order by a.created_at, a.id) as authenticators
      from identity i join auth_policy p on p.id = i.auth_policy_id
     where i.id = any(${ids})`,
    'identity-view',
  )
  return new Map(rows.map((row) => [row.id, row]))
}
