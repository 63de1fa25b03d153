import type { Position, Positions } from '@overlay/rpc'
import { isAtLeast } from '@overlay/store/change-log'

/** The last position of each schema that was written through this gateway. Its later reads show those writes. */
export interface WritePositions {
  positions(): Positions
  /** The same without additions: logins and new identities change nothing that was there before. */
  withoutAdditions(): Positions
  note(schema: string, position: Position | undefined, sort?: 'addition'): void
  /** Forgets the position of a timeline that the schema has left. */
  forget(schema: string, timeline: string): void
}

export function openWritePositions(): WritePositions {
  let positions: Positions = Object.freeze({})
  let withoutAdditions = positions
  return {
    positions: () => positions,
    withoutAdditions: () => withoutAdditions,
    note(schema, position, sort) {
      if (!position) return
      positions = later(positions, schema, position)
      if (sort !== 'addition') withoutAdditions = later(withoutAdditions, schema, position)
    },
    forget(schema, timeline) {
      positions = without(positions, schema, timeline)
      withoutAdditions = without(withoutAdditions, schema, timeline)
    },
  }
}

const later = (positions: Positions, schema: string, position: Position): Positions =>
  isAtLeast(positions[schema], position) ? positions : Object.freeze({ ...positions, [schema]: position })

function without(positions: Positions, schema: string, timeline: string): Positions {
  if (positions[schema]?.timeline !== timeline) return positions
  const { [schema]: _, ...rest } = positions
  return Object.freeze(rest)
}
