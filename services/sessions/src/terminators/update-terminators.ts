import { edgeErrorCode } from '@overlay/channel'
import { metrics } from '@overlay/process'
import { ownContext } from '@overlay/rpc'
import type { Actor } from '@overlay/store/change-log'
import { batch } from '@overlay/store/postgres'
import sql from 'sql-template-tag'
import { AccessRefused } from '../domain/router-access.js'
import { type ClaimedChange, changeBy, type StoredTerminator } from '../domain/terminator-claim.js'
import type { Precedence } from '../domain/terminator-precedence.js'
import { lockTerminators, storedTerminators, updateTerminators } from '../store/router-terminator.js'
import type { WriteDeps } from './create-terminators.js'

export interface TerminatorUpdate {
  readonly id: string
  /** The router that must have it. */
  readonly routerId: string
  /** Undefined: any. */
  readonly binding?: string | undefined
  /** For whom the router asks: a client with this access, or itself. Undefined: it is not the router that asks. */
  readonly asking?: Pick<StoredTerminator, 'serviceId' | 'hostId'> | 'itself' | undefined
  /** Undefined: unchanged. */
  readonly cost?: number | undefined
  readonly precedence?: Precedence | undefined
  readonly by: Actor
}

/**
 * Changes cost and precedence of terminators. Those that are under way share their statements, and one that changes
 * nothing is not written. Throws AccessRefused.
 */
export function openTerminatorUpdater(deps: WriteDeps): (update: TerminatorUpdate) => Promise<void> {
  const run = batch<TerminatorUpdate, AccessRefused | undefined>((updates) => updateAll(deps, updates))
  return async (update) => {
    const refusal = await run(update)
    if (refusal) throw refusal
  }
}

async function updateAll(
  { changeLog }: WriteDeps,
  updates: readonly TerminatorUpdate[],
): Promise<readonly (AccessRefused | undefined)[]> {
  const ids = updates.map(({ id }) => id)
  const planned = planOf(updates, await storedTerminators(changeLog.db, ids))
  if (planned.changes.length === 0) return planned.refusals

  const { result } = await changeLog.write(ownContext(AbortSignal.timeout(60_000)), async (tx) => {
    const locked = await lockTerminators(tx, sql`id = any(${ids})`)
    const { refusals, changes } = planOf(updates, locked)
    const actors = new Map(updates.map(({ id, by }) => [id, by]))
    const rows = await updateTerminators(tx, locked, changes)
    return { result: refusals, changes: rows.map((row) => ({ ...row, by: actors.get(row.id) })) }
  })
  return result
}

function planOf(updates: readonly TerminatorUpdate[], stored: ReadonlyMap<string, StoredTerminator>) {
  const state = new Map(stored)
  const changes = new Map<string, ClaimedChange>()
  const refusals = updates.map((update) => {
    const { id, cost, precedence } = update
    const existing = state.get(id)
    const refusal = refusalOf(existing, update)
    if (refusal || !existing) return refusal
    const change = changeBy(existing, {
      ...existing,
      cost: cost ?? existing.cost,
      precedence: precedence ?? existing.savedPrecedence ?? existing.precedence,
    })
    if (!change) return undefined
    changes.set(id, change)
    state.set(id, { ...existing, ...change })
    return undefined
  })
  return { refusals, changes: [...changes.values()] }
}

/** Why the router may not act on the terminator. */
export function refusalOf(
  existing: StoredTerminator | undefined,
  { id, routerId, binding, asking }: TerminatorUpdate,
): AccessRefused | undefined {
  const refused = (text: string) => new AccessRefused(edgeErrorCode.invalidTerminator, text)
  if (!existing) return refused('invalid terminator: not found')
  if (existing.routerId !== routerId) {
    metrics.routerMessagesForbidden.inc({ subject: 'terminator' })
    return refused(`terminator ${id} belongs to another router`)
  }
  if (binding !== undefined && existing.binding !== binding)
    return refused(`terminator ${id} has binding ${existing.binding}, expected ${binding}`)
  if (!asking) return undefined
  // differs: the original lets routers change the terminators of administrators, and those of other clients
  if (existing.isOfAdministrator) return refused(`terminator ${id} is that of an administrator`)
  const isForeign =
    asking !== 'itself' && (asking.serviceId !== existing.serviceId || asking.hostId !== existing.hostId)
  if (isForeign) return refused(`terminator ${id} belongs to another host`)
  return undefined
}
