import { edgeErrorCode } from '@overlay/channel'
import { service } from '@overlay/model'
import { metrics } from '@overlay/process'
import { ownContext } from '@overlay/rpc'
import { type ChangeLog, lockEntities, type RowChange } from '@overlay/store/change-log'
import { batch, type Tx } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { AccessRefused } from '../domain/router-access.js'
import {
  type ClaimedChange,
  changeBy,
  conflictOf,
  type StoredTerminator,
} from '../domain/terminator-claim.js'
import {
  hostsOfInstances,
  insertTerminators,
  lockInstances,
  lockPlaces,
  lockRouters,
  lockSessions,
  lockTerminators,
  type NewTerminator,
  storedTerminators,
  updateTerminators,
} from '../store/router-terminator.js'
import { actorOf } from './actor.js'

/** The id belongs to another terminator. */
export class TerminatorConflict extends AccessRefused {
  constructor(message: string) {
    super(edgeErrorCode.internal, message)
  }
}

/** Ends the circuits to these terminators. */
export type EndCircuits = (terminatorIds: readonly string[]) => Promise<void>

export interface WriteDeps {
  readonly changeLog: Pick<ChangeLog, 'db' | 'write'>
}

/** How often a terminator is looked up that another transaction inserts at the same time. */
const ATTEMPTS = 3

type Outcome = 'done' | 'again' | Error

/**
 * Creates terminators, or updates those that exist. Routers repeat thousands of them when they reconnect: those that are
 * under way share their statements, and one that changes nothing is not written. Throws TerminatorConflict and
 * AccessRefused.
 */
export function openTerminatorCreator(deps: WriteDeps): (claim: NewTerminator) => Promise<void> {
  const create = batch<NewTerminator, Outcome>((claims) => createAll(deps, claims))
  return async (claim) => {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      const outcome = await create(claim)
      if (outcome === 'done') return
      if (outcome !== 'again') throw outcome
    }
    throw new TerminatorConflict('selected id is in use')
  }
}

async function createAll(deps: WriteDeps, claims: readonly NewTerminator[]): Promise<readonly Outcome[]> {
  const { changeLog } = deps
  const stored = await storedTerminators(
    changeLog.db,
    claims.map(({ id }) => id),
  )
  const isSettled = (claim: NewTerminator): boolean => {
    const existing = stored.get(claim.id)
    return existing !== undefined && !conflictOf(existing, claim) && !changeBy(existing, claim)
  }
  const open = claims.filter((claim) => !isSettled(claim))
  if (open.length === 0) return claims.map(() => 'done')

  const { result } = await changeLog.write(ownContext(AbortSignal.timeout(60_000)), async (tx) => {
    const { outcomes, changes } = await writeClaims(tx, open)
    return { result: outcomes, changes }
  })
  return claims.map((claim) => result.get(claim) ?? 'done')
}

interface Written {
  readonly outcomes: ReadonlyMap<NewTerminator, Outcome>
  readonly changes: readonly RowChange[]
}

async function writeClaims(tx: Tx, claims: readonly NewTerminator[]): Promise<Written> {
  const ids = claims.map(({ id }) => id)
  const refusals = await lockReferences(tx, claims)
  const locked = await lockTerminators(tx, sql`id = any(${ids})`)

  const outcomes = new Map<NewTerminator, Outcome>()
  const state = new Map<string, StoredTerminator>(locked) // as it will be after the transaction
  const inserts = new Map<string, NewTerminator>()
  const updates = new Map<string, ClaimedChange>()
  for (const claim of claims) {
    const existing = state.get(claim.id)
    const conflict = existing && conflictOf(existing, claim)
    const refusal = conflict ? new TerminatorConflict(conflict) : refusals(claim, existing !== undefined)
    if (refusal) {
      outcomes.set(claim, refusal)
      continue
    }
    const change = existing && changeBy(existing, claim)
    const inserted = inserts.get(claim.id)
    if (!existing) inserts.set(claim.id, claim)
    else if (change && inserted) inserts.set(claim.id, { ...inserted, ...change })
    else if (change) updates.set(claim.id, change)
    state.set(claim.id, { ...claim, savedPrecedence: null, isOfAdministrator: false, ...existing, ...change })
  }

  const updated = await updateTerminators(tx, locked, [...updates.values()])
  const created = inserts.size > 0 ? await insertTerminators(tx, [...inserts.values()]) : []
  const isCreated = new Set(created.map(({ id }) => id))
  for (const claim of claims)
    if (inserts.has(claim.id) && !isCreated.has(claim.id) && !outcomes.has(claim))
      outcomes.set(claim, 'again')

  const hosts = new Map(claims.map(({ id, hostId, routerId }) => [id, actorOf(hostId || routerId)]))
  const changes = [...updated, ...created].map((change) => ({ ...change, by: hosts.get(change.id) }))
  return { outcomes, changes }
}

type Refusals = (claim: NewTerminator, exists: boolean) => Error | undefined

/** Locks what the terminators refer to, in the order of references.ts. Returns why one cannot be written. */
async function lockReferences(tx: Tx, claims: readonly NewTerminator[]): Promise<Refusals> {
  const services = new Set(claims.map(({ serviceId }) => serviceId))
  const deleted = (await lockEntities(tx, new Map([[service.kind, services]]))).get(service.kind)
  const sessionIds = claims.flatMap(({ sessionId }) => sessionId ?? [])
  const sessions = await lockSessions(tx, [...new Set(sessionIds)])
  const routers = await lockRouters(tx, [...new Set(claims.map(({ routerId }) => routerId))])
  const isGranted = await lockPlaces(
    tx,
    claims.filter(({ isByRouter }) => isByRouter),
  )
  const named = claims.filter(({ instanceId }) => instanceId !== '')
  if (named.length > 0) await lockInstances(tx, named)
  const hosts = named.length > 0 ? [...(await hostsOfInstances(tx, named))] : []

  return (claim, exists) => {
    const { serviceId, sessionId, routerId, instanceId, hostId, isByRouter } = claim
    if (deleted?.has(serviceId)) return new AccessRefused(edgeErrorCode.invalidService, 'invalid service')
    if (sessionId !== null && !sessions.has(sessionId))
      return new AccessRefused(edgeErrorCode.invalidSession, 'invalid session')
    if (!routers.has(routerId))
      return new AccessRefused(edgeErrorCode.invalidEdgeRouter, 'invalid edge router')
    if (isByRouter && !isGranted(claim)) {
      metrics.routerClaimRefused.inc({ reason: 'service' })
      return new AccessRefused(edgeErrorCode.invalidService, 'the router may not host this service')
    }
    if (exists || instanceId === '') return undefined
    const sibling = hosts.find(
      (other) => other.serviceId === serviceId && other.instanceId === instanceId && other.hostId !== hostId,
    )
    if (sibling)
      return new AccessRefused(
        edgeErrorCode.internal,
        `sibling terminator ${sibling.id} with shared identity ${instanceId} belongs to different identity`,
      )
    hosts.push(claim)
    return undefined
  }
}
