import { ownBytes } from '@overlay/process/bytes'
import { LRUCache } from 'lru-cache'

/** The JSON of rows of a kind that this replica has sent lately, by all that it is made of. */
export interface KeptRows {
  find(id: string, madeOf: string): Buffer | undefined
  keep(id: string, madeOf: string, json: Buffer): void
  /** Whether most rows of the latest pages could be found. */
  areLikely(): boolean
  /** Reports how many rows of a page could be found. */
  note(found: number, rows: number): void
}

const MOST_BYTES = 32 * 1024 * 1024
const MOST_BYTES_OF_ONE = 16 * 1024
/** How much the latest page counts, beside all those before it. */
const WEIGHT = 0.2

export function openKeptRows(): KeptRows {
  const rows = new LRUCache<string, { readonly madeOf: string; readonly json: Buffer }>({
    maxSize: MOST_BYTES,
    maxEntrySize: MOST_BYTES_OF_ONE,
    sizeCalculation: ({ madeOf, json }, id) => id.length + madeOf.length + json.length,
  })
  let share = 0
  return {
    find(id, madeOf) {
      const kept = rows.get(id)
      return kept?.madeOf === madeOf ? kept.json : undefined
    },
    keep(id, madeOf, json) {
      rows.set(id, { madeOf, json: ownBytes(json) })
    },
    areLikely: () => share > 0.5,
    note(found, all) {
      if (all > 0) share += WEIGHT * (found / all - share)
    },
  }
}
