import { ctrlType } from '@overlay/channel'
import { fairQueue } from '@overlay/process/async'
import { ownContext } from '@overlay/rpc'
import sql, { type Sql } from 'sql-template-tag'
import type { Handler } from '../channel/handlers.js'
import { answer, failed, succeeded } from '../channel/replies.js'
import type { ClaimedChange, StoredTerminator } from '../domain/terminator-claim.js'
import { QUIESCE_PAGE } from '../limits.js'
import { lockTerminators, updateTerminators } from '../store/router-terminator.js'
import { actorOf } from './actor.js'
import type { WriteDeps } from './create-terminators.js'

export interface QuiesceDeps extends WriteDeps {
  /** Deletes the router, as an administrator does. */
  readonly deleteRouter: (routerId: string) => Promise<void>
}

/** Each writes up to as many rows as a router has terminators. No router may keep all connections to the database busy. */
const changeLimits = { name: 'quiesces', running: 2, waiting: 10_000 }

/** A router takes its terminators out of use, puts them back, or leaves the network. */
export function quiesceHandlers(deps: QuiesceDeps): readonly Handler[] {
  const queue = fairQueue(changeLimits)
  const handler = (type: number, work: (routerId: string) => Promise<void>): Handler => ({
    type,
    prepare: (message, router) => () =>
      answer(router, message, failed, async () => {
        const { routerId } = router
        await queue({ source: routerId, name: '' }, () => work(routerId))
        return succeeded()
      }),
  })
  return [
    handler(ctrlType.quiesceRouter, (routerId) =>
      changeAll(deps, routerId, sql`precedence <> 'failed'`, ({ id, cost, precedence, sessionId }) => ({
        ...{ id, cost, sessionId },
        precedence: 'failed',
        savedPrecedence: precedence,
      })),
    ),
    handler(ctrlType.dequiesceRouter, (routerId) =>
      changeAll(deps, routerId, sql`saved_precedence is not null`, (stored) => ({
        ...{ id: stored.id, cost: stored.cost, sessionId: stored.sessionId },
        precedence: stored.savedPrecedence ?? stored.precedence,
        savedPrecedence: null,
      })),
    ),
    handler(ctrlType.decommissionRouter, deps.deleteRouter),
  ]
}

/** Each page is a transaction: a router may have very many terminators. Repeating it changes nothing. */
async function changeAll(
  { changeLog }: WriteDeps,
  routerId: string,
  which: Sql,
  change: (stored: StoredTerminator) => ClaimedChange,
): Promise<void> {
  for (let after = '', isLast = false; !isLast; ) {
    const { result } = await changeLog.write(ownContext(AbortSignal.timeout(60_000)), async (tx) => {
      const page = sql`router_id = ${routerId} and id > ${after} and ${which}`
      const locked = await lockTerminators(tx, page, QUIESCE_PAGE)
      const rows = await updateTerminators(tx, locked, [...locked.values()].map(change))
      const changes = rows.map((row) => ({ ...row, by: actorOf(routerId) }))
      return { result: [...locked.keys()], changes }
    })
    after = result.at(-1) ?? after
    isLast = result.length < QUIESCE_PAGE
  }
}
