import type { Change, Position } from '@overlay/rpc'
import type { Logger } from 'pino'
import type { Bus } from './bus.js'
import { startFollower } from './follower.js'
import type { Source } from './source.js'

/** Another service's rows in memory, in every replica. */
export interface Projection extends AsyncDisposable {
  readonly schema: string
  position(): Position | undefined
  /** It had all that its owner had within the last two seconds. */
  trusted(): boolean
  /** Resolves when the position is in memory; asks the owner at once when it is not. TIMEOUT when aborted. */
  reach(position: Position, signal: AbortSignal): Promise<void>
  /** Resolves when memory has all that the owner had at the time of the call: one look-up for all who wait. */
  confirm(signal: AbortSignal): Promise<void>
}

/** What is kept of the rows. Both functions are synchronous: readers never see half of a load. */
export interface Memory {
  readonly kinds: readonly string[]
  /** Forgets everything; all rows follow in one `apply`. */
  reset(): void
  /** In order. A row may come again as it already is. */
  apply(changes: readonly Change[], upto: Position): void
}

const TRUST_MS = 2000
const PUSH_MS = 50 // by then the owner has pushed what a hint announced

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
  const follower = startFollower(
    source,
    {
      kinds: memory.kinds,
      gatherMs: 0,
      start: async () => undefined,
      async replace(rows, upto) {
        memory.reset()
        memory.apply(rows, upto)
        return upto
      },
      async take(changes, upto) {
        memory.apply(changes, upto)
        return upto
      },
    },
    log,
  )

  let due: NodeJS.Timeout | undefined
  const hints = bus.subscribe(`overlay.${schema}.head`, (hint) => {
    due ??= setTimeout(() => {
      due = undefined
      follower.reach(hint as Position, AbortSignal.timeout(TRUST_MS)).catch(() => undefined) // trust ends by itself
    }, PUSH_MS)
  })
  if (loaded === 'await') await follower.loaded
  return {
    schema,
    position: follower.position,
    trusted: () => follower.heardWithin(TRUST_MS),
    reach: follower.reach,
    confirm: follower.confirm,
    async [Symbol.asyncDispose]() {
      clearTimeout(due)
      hints[Symbol.dispose]()
      await follower[Symbol.asyncDispose]()
    },
  }
}
