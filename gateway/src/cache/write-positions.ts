import type { Position, Positions } from '@overlay/rpc'

/** The last position of each schema that was written through this gateway: what went through it is visible through it. */
export interface WritePositions {
  positions(): Positions
  note(schema: string, position: Position | undefined): void
  /** The schema has left this timeline: its positions mean nothing any more. */
  ended(schema: string, timeline: string): void
}

export function openWritePositions(): WritePositions {
  let positions: Positions = Object.freeze({})
  return {
    positions: () => positions,
    note(schema, position) {
      if (!position || isAtLeast(positions[schema], position)) return
      positions = Object.freeze({ ...positions, [schema]: position })
    },
    ended(schema, timeline) {
      if (positions[schema]?.timeline !== timeline) return
      const { [schema]: _, ...others } = positions
      positions = Object.freeze(others)
    },
  }
}

/** Both together: of each schema the later position; of two timelines that of the first. */
export function latest(a: Positions, b: Positions): Positions {
  const later = Object.entries(b).filter(([schema, position]) => isAtLeast(position, a[schema]))
  return { ...a, ...Object.fromEntries(later) }
}

/** Is what is known at `at` as new as `wanted`? Of another timeline it never is. */
export const isAtLeast = (at: Position | undefined, wanted: Position | undefined): boolean =>
  wanted === undefined || (at !== undefined && at.timeline === wanted.timeline && at.number >= wanted.number)
