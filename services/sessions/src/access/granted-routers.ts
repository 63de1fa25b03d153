import { openAlarm, pagesOf } from '@overlay/process/async'
import { type Methods, ownContext, type PolicyServiceService, type Positions } from '@overlay/rpc'
import { isAtLeast, latest } from '@overlay/store/change-log'
import type { Audience, Audiences, GrantedRouters, Holder } from '../domain/audiences.js'
import type { GrantWatch } from '../grants/watch-grants.js'
import { GRANTED_ROUTERS_MS, IDENTITIES_PER_CALL } from '../limits.js'

export interface PlacingDeps {
  readonly audiences: Audiences
  readonly policy: Pick<Methods<PolicyServiceService>, 'getIdentityRouters'>
  readonly grantWatch: Pick<GrantWatch, 'positions' | 'onChange' | 'lacksRouters'>
  /** The end of the change log of policy. */
  readonly policyHead: () => Promise<Positions>
}

export interface PlacingListener {
  /** There is something to ask for. */
  due(): void
  /** Called for each identity whose routers are other ones. */
  moved(holder: Holder, before: Audience | undefined): void
  /** Some identities have been placed. */
  placed(): void
}

/** Asks policy which routers it grants the identities that have API sessions. */
export function openPlacing(
  { audiences, policy, grantWatch, policyHead }: PlacingDeps,
  listener: PlacingListener,
) {
  const unknown = new Map<Holder, number>() // oldest first, by number
  const stale = new Set<Holder>()
  let areAllStale = false
  let rest: Holder[] = [] // of all, when they were stale the last time
  const progressed = openAlarm()
  let added = 0

  const isRestDue = (): boolean => areAllStale || rest.length > 0
  const exists = (holder: Holder): boolean => audiences.of(holder.identityId) === holder

  /** What was known of all identities may have changed. */
  function allChanged(): void {
    areAllStale = true
    listener.due()
  }
  function nextOfRest(): Holder[] {
    if (rest.length === 0 && areAllStale) {
      rest = [...audiences.holders()]
      areAllStale = false
    }
    return rest.splice(-IDENTITIES_PER_CALL).filter(exists)
  }
  function changed(identityId: string): void {
    const holder = audiences.of(identityId)
    if (holder) stale.add(holder)
  }
  grantWatch.onChange((ids) => {
    if (ids === 'all') return allChanged()
    for (const id of ids) changed(id)
    if (stale.size > 0) listener.due()
  })

  async function routersOf(holders: readonly Holder[], positions: Positions): Promise<GrantedRouters[]> {
    if (grantWatch.lacksRouters()) return holders.map(() => 'all')
    const context = { ...ownContext(AbortSignal.timeout(GRANTED_ROUTERS_MS)), positions }
    const identityIds = holders.map(({ identityId }) => identityId)
    const { sets, setOf } = await policy.getIdentityRouters({ identityIds }, context)
    return setOf.map((index) => sets[index]?.ids ?? [])
  }

  async function ask(holders: readonly Holder[], positions: Positions): Promise<void> {
    for (const holder of holders) stale.delete(holder) // if it changes meanwhile, it is asked for again
    try {
      const routers = await routersOf(holders, positions)
      for (const [at, holder] of holders.entries()) {
        const before = holder.audience
        if (!audiences.place(holder, routers[at] ?? [])) continue
        unknown.delete(holder)
        if (holder.audience !== before) listener.moved(holder, before)
      }
    } catch (err) {
      for (const holder of holders) if (exists(holder)) stale.add(holder)
      throw err
    }
    listener.placed()
    progressed.ring()
  }

  return {
    /** The identity has its first API session. */
    added(holder: Holder): void {
      if (!holder.audience && !unknown.has(holder)) unknown.set(holder, ++added)
    },
    /** The identity has none any more. */
    removed(holder: Holder): void {
      unknown.delete(holder)
      stale.delete(holder)
      progressed.ring()
    },
    changed,
    allChanged,
    isDue: (): boolean => unknown.size + stale.size > 0 || isRestDue(),
    /** Asks for some of the identities that are not known or may have changed. To be called while `isDue`. */
    async refresh(): Promise<void> {
      const named = first(unknown.size > 0 ? unknown.keys() : stale, IDENTITIES_PER_CALL)
      const some = named.length > 0 ? named : nextOfRest()
      if (some.length > 0) await ask(some, grantWatch.positions())
    },
    /** The routers of these are afterwards as policies grant them now, and the identities as they were at the position. */
    async refreshAt(holders: readonly Holder[], positions: Positions): Promise<void> {
      const head = await policyHead().catch(() => undefined)
      const isCurrent = head && !isRestDue() && isAtLeast(grantWatch.positions().policy, head.policy)
      const asked = holders.filter((holder) => !isCurrent || unknown.has(holder) || stale.has(holder))
      const at = latest(latest(grantWatch.positions(), head ?? {}), positions)
      for (const page of pagesOf(asked, IDENTITIES_PER_CALL)) await ask(page, at)
    },
    /** Resolves when the routers of all identities of now are known, or the signal is aborted. */
    async known(signal: AbortSignal): Promise<void> {
      const last = added
      const isKnown = (): boolean => [...first(unknown.values(), 1)].every((number) => number > last)
      while (!isKnown() && !signal.aborted) await progressed.sleep(signal)
    },
  }
}

function first<T>(all: Iterable<T>, count: number): T[] {
  const some: T[] = []
  for (const one of all) if (some.push(one) === count) break
  return some
}
