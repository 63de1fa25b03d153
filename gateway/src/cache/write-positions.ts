import { isAtLeast } from '@overlay/platform/change-log'
import type { Position, Positions } from '@overlay/rpc'

/** The last position of each schema that was written through this gateway. Its later reads show those writes. */
export interface WritePositions {
  positions(): Positions
  /** The same without logins: they change nothing that was there before. */
  withoutLogins(): Positions
  note(schema: string, position: Position | undefined, sort?: 'login'): void
  /** Forgets the position of a timeline that the schema has left. */
  forget(schema: string, timeline: string): void
}

export function openWritePositions(): WritePositions {
  let positions: Positions = Object.freeze({})
  let withoutLogins = positions
  return {
    positions: () => positions,
    withoutLogins: () => withoutLogins,
    note(schema, position, sort) {
      if (!position) return
      positions = later(positions, schema, position)
      if (sort !== 'login') withoutLogins = later(withoutLogins, schema, position)
    },
    forget(schema, timeline) {
      positions = without(positions, schema, timeline)
      withoutLogins = without(withoutLogins, schema, timeline)
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
