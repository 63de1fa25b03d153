import { pagesOf, yielder } from '@overlay/process/async'
import type { Change, Position } from '@overlay/rpc'
import type { Logger } from 'pino'
import { FRESH_MS, GATHER_MS, STEP_ROWS } from '../limits.js'
import { applyToMemory } from './apply-to-memory.js'
import { type Follower, startFollower } from './follower.js'
import { poisonOf } from './poison.js'
import type { Source } from './source.js'

/** Another service's rows in memory, in every replica. */
export interface Projection
  extends Pick<Follower, 'position' | 'isHeard' | 'waitFor' | 'catchUp' | 'ageMs'>,
    AsyncDisposable {
  readonly schema: string
  /** True when it had all that its owner had within the last two seconds. */
  isFresh(): boolean
}

/** The rows in memory. */
export interface Memory {
  /** In metrics. */
  readonly name: string
  readonly kinds: readonly string[]
  /** The kinds whose rows a load has. Absent: all. */
  readonly loadedKinds?: readonly string[]
  /** In order, and at once: readers never see half of a message. A row may come again unchanged. */
  apply(changes: readonly Change[], upto: Position): void
  /** In place of `apply` where the row cannot be read, or `apply` throws: does what is safe. Absent: keeps the row. */
  unknown?(change: Change, upto: Position): void
  /** Begins a load. It may be abandoned for another. */
  load(): MemoryLoad
}

/** Between these calls the process does other work, but applies no change. The memory is not fresh meanwhile. */
export interface MemoryLoad {
  add(rows: readonly Change[], upto: Position): void
  /** In place of `add`. Absent: as if the row were deleted. */
  unknown?(row: Change, upto: Position): void
  /** All rows were added: the others are deleted. */
  end(upto: Position): void | Promise<void>
}

/** Loads from the owner, then follows. `background`: returns before the first load. */
export async function openProjection(
  source: Source,
  memory: Memory,
  { log, loaded = 'await' }: { readonly log: Logger; readonly loaded?: 'await' | 'background' },
): Promise<Projection> {
  const { schema } = source
  const stop = new AbortController()
  const poison = poisonOf(source, log, stop.signal)
  const follower = startFollower(
    source,
    {
      name: memory.name,
      kinds: memory.kinds,
      loadedKinds: memory.loadedKinds ?? memory.kinds,
      gatherMs: GATHER_MS,
      mixesLoads: true,
      start: async () => undefined,
      async replace({ upto, pages }) {
        const load = memory.load()
        const yieldNow = yielder()
        for await (const rows of pages) {
          for (const page of pagesOf(rows, STEP_ROWS)) {
            await applyToMemory(
              page,
              poison,
              (rows) => load.add(rows, upto),
              (row) => load.unknown?.(row, upto),
            )
            await yieldNow()
          }
        }
        await load.end(upto)
        return upto
      },
      async take(changes, upto) {
        const at = (change?: Change): Position => ({ ...upto, number: change?.number ?? upto.number })
        const wasSplit = await applyToMemory(
          changes,
          poison,
          (part) => memory.apply(part, part === changes ? upto : at(part.at(-1))),
          (change) => memory.unknown?.(change, at(change)),
        )
        if (wasSplit) memory.apply([], upto)
        return upto
      },
    },
    log,
  )
  if (loaded === 'await') await follower.loaded
  return {
    schema,
    position: follower.position,
    isFresh: () => follower.ageMs() < FRESH_MS,
    ageMs: follower.ageMs,
    isHeard: follower.isHeard,
    waitFor: follower.waitFor,
    catchUp: follower.catchUp,
    async [Symbol.asyncDispose]() {
      stop.abort()
      await follower[Symbol.asyncDispose]()
    },
  }
}

/**
 * Reports that rows of these kinds may have changed, without their content. `changed` gets the position that a read must
 * have reached to see them.
 */
export function watchKinds(
  source: Source,
  kinds: readonly string[],
  changed: (upto: Position) => void,
  options: Parameters<typeof openProjection>[2],
): Promise<Projection> {
  const memory = {
    name: `changes of ${kinds.join(' and ')}`,
    kinds,
    load: () => ({ add: () => undefined, end: changed }),
    apply(changes: readonly unknown[], upto: Position): void {
      if (changes.length > 0) changed(upto)
    },
  }
  return openProjection(source, memory, options)
}
