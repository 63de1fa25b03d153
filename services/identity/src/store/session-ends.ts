import type { RowChange } from '@overlay/store/change-log'
import { type Db, onlyRow, type Tx } from '@overlay/store/postgres'
import sql, { type Sql } from 'sql-template-tag'
import { isMethodAllowed, isOlderThan } from './api-sessions.js'
import { authenticatorOf } from './signers.js'

interface EndedSession {
  readonly id: string
  readonly identityId: string
  readonly authenticatorId: string
  readonly ipAddress: string
}

/** Ends sessions. Gateways drop them from their caches, and routers close their connections. */
export async function endSessions(tx: Tx, which: Sql): Promise<RowChange[]> {
  const { rows } = await tx.query<EndedSession>(sql`
    delete from api_session where ${which}
 returning id, identity_id as "identityId", authenticator_id as "authenticatorId", ip_address as "ipAddress"`)
  return rows.map(
    (before): RowChange => ({ kind: 'api-sessions', id: before.id, before, after: null, payload: null }),
  )
}

export const endSessionsOfIdentities = (tx: Tx, ids: readonly string[]): Promise<RowChange[]> =>
  endSessions(tx, sql`identity_id = any(${ids})`)

/** Ends the sessions that the authenticator opened, except one. */
export const endSessionsOfAuthenticator = (tx: Tx, id: string, exceptId = ''): Promise<RowChange[]> =>
  endSessions(tx, sql`authenticator_id = ${id} and id <> ${exceptId}`)

/** Ends the sessions of the identity that its next auth policy does not allow. */
export const endSessionsOutside = (tx: Tx, identityId: string, authPolicyId: string): Promise<RowChange[]> =>
  endSessions(
    tx,
    sql`id in (
      select s.id from api_session s, auth_policy p
       where s.identity_id = ${identityId} and p.id = ${authPolicyId} and not ${isMethodAllowed})`,
  )

/**
 * Marks an auth policy that allows less than before: its sessions are refused from now on, and the reaper deletes them.
 */
export const markSessionsToEnd = (tx: Tx, authPolicyId: string) =>
  tx.query(sql`update auth_policy set ends_sessions = true where id = ${authPolicyId}`)

export interface SessionLimits {
  readonly idleMs: number
  /** 0: no limit. */
  readonly lifetimeMs: number
}

/** Whether sessions must end. A read is cheaper than a transaction that finds nothing. */
export async function areSessionsDue(db: Db, limits: SessionLimits): Promise<boolean> {
  const { rows } = await db.query<{ isDue: boolean }>(
    sql`
    select exists (select from api_session where ${hasLapsedToken} or ${hasExpired(limits)})
        or exists (select from ended_signer)
        or exists (select from auth_policy where ends_sessions) as "isDue"`,
    'are-sessions-due',
  )
  return onlyRow(rows).isDue
}

const hasLapsedToken = sql`(second_token_until <= now() and second_token_until <> 'infinity')`

/** Those of routers are authenticated by their control channels. What routers host must outlast a long disconnection. */
const hasExpired = ({ idleMs, lifetimeMs }: SessionLimits): Sql => sql`
    (method <> 'router'
     and ((client_id is null and ${isOlderThan(sql`last_activity_at`, idleMs)})
          or expires_at < now()
          or ${isOlderThan(sql`created_at`, lifetimeMs)}))`

/** Deletes up to `count` sessions that must end. Does nothing while another replica does it. */
export async function endDueSessions(tx: Tx, limits: SessionLimits, count: number): Promise<RowChange[]> {
  const { rows } = await tx.query<{ isLocked: boolean }>(sql`
    select pg_try_advisory_xact_lock(hashtextextended('end idle sessions', 0)) as "isLocked"`)
  if (!rows[0]?.isLocked) return []
  await forgetLapsedTokens(tx, count)
  const disallowed = await endOfEndedSigners(tx, count)
  if (disallowed.length < count)
    disallowed.push(...(await endOfStricterPolicies(tx, count - disallowed.length)))
  const expired = await endSessions(
    tx,
    sql`id in (
      select id from api_session
       where ${hasExpired(limits)} limit ${count - disallowed.length} for update skip locked)`,
  )
  return [...disallowed, ...expired]
}

/** Routers drop sessions whose second token has expired. */
const forgetLapsedTokens = (tx: Tx, count: number) =>
  tx.query(sql`
    update api_session set second_signer_id = null, second_token_until = null
     where id in (
      select id from api_session
       where ${hasLapsedToken} limit ${count} for no key update skip locked)`)

/** Marks a signer that no longer admits anyone: its sessions are refused from now on, and the reaper deletes them. */
export const markSignerEnded = (tx: Tx, signerId: string) =>
  tx.query(sql`insert into ended_signer (signer_id) values (${signerId}) on conflict do nothing`)

async function endOfEndedSigners(tx: Tx, count: number): Promise<RowChange[]> {
  const { rows } = await tx.query<{ id: string }>(sql`
    select signer_id as id from ended_signer order by signer_id limit 100 for update`)
  if (rows.length === 0) return []
  const ids = rows.map(({ id }) => id)
  const which = disallowed(sql`s.authenticator_id = any(${ids.map(authenticatorOf)})`)
  const ended = await endDisallowed(tx, which, count)
  if (ended.length < count)
    await tx.query(sql`
      delete from ended_signer where signer_id = any(${ids}) and not exists (select ${which})`)
  return ended
}

/** Ends sessions page by page, because a policy may have any number. The locks keep changes of the policies waiting. */
async function endOfStricterPolicies(tx: Tx, count: number): Promise<RowChange[]> {
  const { rows } = await tx.query<{ id: string }>(sql`
    select id from auth_policy where ends_sessions order by id for no key update`)
  if (rows.length === 0) return []
  const ids = rows.map(({ id }) => id)
  const which = disallowed(sql`p.id = any(${ids})`)
  const ended = await endDisallowed(tx, which, count)
  if (ended.length < count)
    await tx.query(sql`
      update auth_policy set ends_sessions = false where id = any(${ids}) and not exists (select ${which})`)
  return ended
}

/** The sessions whose method, or signer, their auth policy does not allow. */
const disallowed = (which: Sql): Sql => sql`
        from api_session s
        join identity i on i.id = s.identity_id
        join auth_policy p on p.id = i.auth_policy_id
       where ${which} and not ${isMethodAllowed}`

/** Ends up to `count` of them, without those that others have locked: the mark stays until no one is left. */
const endDisallowed = (tx: Tx, which: Sql, count: number): Promise<RowChange[]> =>
  endSessions(tx, sql`id in (select s.id ${which} limit ${count} for update of s skip locked)`)
