import { isAtLeast } from '@overlay/platform/change-log'
import type { Position, Positions } from '@overlay/rpc'

/** The last position of each schema that was written through this gateway. Its later reads show those writes. */
export interface WritePositions {
  positions(): Positions
  note(schema: string, position: Position | undefined): void
  /** Forgets the position of a timeline that the schema has left. */
  forget(schema: string, timeline: string): void
}

export function openWritePositions(): WritePositions {
  let positions: Positions = Object.freeze({})
  return {
    positions: () => positions,
    note(schema, position) {
      if (!position || isAtLeast(positions[schema], position)) return
      positions = Object.freeze({ ...positions, [schema]: position })
    },
    forget(schema, timeline) {
      if (positions[schema]?.timeline !== timeline) return
      const { [schema]: _, ...rest } = positions
      positions = Object.freeze(rest)
    },
  }
}
