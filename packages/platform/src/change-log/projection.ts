import type { Change, Position } from '@overlay/rpc'
import type { Logger } from 'pino'
import { yielder } from '../async/yielding.js'
import type { Bus } from './bus.js'
import { feed } from './feed.js'
import { startFollower } from './follower.js'
import { poisonOf } from './poison.js'
import type { Source } from './source.js'

/** Another service's rows in memory, in every replica. */
export interface Projection extends AsyncDisposable {
  readonly schema: string
  position(): Position | undefined
  /** It had all that its owner had within the last two seconds. */
  isFresh(): boolean
  /** Resolves when the position is in memory; asks the owner at once when it is not. TIMEOUT when aborted. */
  waitFor(position: Position, signal: AbortSignal): Promise<void>
  /** Resolves when memory has all that the owner had at the time of the call: one look-up for all who wait. */
  catchUp(signal: AbortSignal): Promise<void>
}

/** What is kept of the rows. */
export interface Memory {
  readonly kinds: readonly string[]
  /** In order, and at once: readers never see half of a message. A row may come again as it already is. */
  apply(changes: readonly Change[], upto: Position): void
  /** The row may be there, but it cannot be had, or `apply` throws: what is safe then. Absent: what is known stays. */
  unknown?(change: Change, upto: Position): void
  /** A load begins. It may end early, and another begin. */
  load(): MemoryLoad
}

/** The process does other things between these calls, but no change is applied. Nobody trusts the memory meanwhile. */
export interface MemoryLoad {
  add(rows: readonly Change[], upto: Position): void
  /** In place of `add`. Absent: as if it were gone. */
  unknown?(row: Change, upto: Position): void
  /** All rows were added: what was not among them is gone. */
  end(upto: Position): void | Promise<void>
}

const TRUST_MS = 2000
const ROWS_AT_ONCE = 10
const PUSH_MS = 150 // by then the owner has looked, and pushed what a hint announced

/** Loads from the owner, then follows. In the background: returns before the first load. */
export async function openProjection(
  source: Source,
  memory: Memory,
  {
    bus,
    log,
    loaded = 'await',
  }: {
    readonly bus: Pick<Bus, 'subscribe'>
    readonly log: Logger
    readonly loaded?: 'await' | 'background'
  },
): Promise<Projection> {
  const { schema } = source
  const stop = new AbortController()
  const poison = poisonOf(source, log, stop.signal)
  const follower = startFollower(
    source,
    {
      kinds: memory.kinds,
      gatherMs: 0,
      mixesLoads: true,
      start: async () => undefined,
      async replace({ upto, pages }) {
        const load = memory.load()
        const breathe = yielder()
        for await (const rows of pages) {
          for (let from = 0; from < rows.length; from += ROWS_AT_ONCE) {
            await feed(
              rows.slice(from, from + ROWS_AT_ONCE),
              poison,
              (some) => load.add(some, upto),
              (row) => load.unknown?.(row, upto),
            )
            await breathe()
          }
        }
        await load.end(upto)
        return upto
      },
      async take(changes, upto) {
        const at = (change?: Change): Position => ({ ...upto, number: change?.number ?? upto.number })
        const wereAlone = await feed(
          changes,
          poison,
          (some) => memory.apply(some, some === changes ? upto : at(some.at(-1))),
          (change) => memory.unknown?.(change, at(change)),
        )
        if (wereAlone) memory.apply([], upto)
        return upto
      },
    },
    log,
  )

  let due: NodeJS.Timeout | undefined
  const hints = bus.subscribe(`overlay.${schema}.head`, (hint) => {
    due ??= setTimeout(() => {
      due = undefined
      follower.waitFor(hint as Position, AbortSignal.timeout(TRUST_MS)).catch(() => undefined) // trust ends by itself
    }, PUSH_MS)
  })
  if (loaded === 'await') await follower.loaded
  return {
    schema,
    position: follower.position,
    isFresh: () => follower.isFresh(TRUST_MS),
    waitFor: follower.waitFor,
    catchUp: follower.catchUp,
    async [Symbol.asyncDispose]() {
      stop.abort()
      clearTimeout(due)
      hints[Symbol.dispose]()
      await follower[Symbol.asyncDispose]()
    },
  }
}
