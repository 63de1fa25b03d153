import type { Position, Positions } from '@overlay/rpc'

/** The later position of each schema. On different timelines the first argument wins. */
export function latest(a: Positions, b: Positions): Positions {
  const later = Object.entries(b).filter(([schema, position]) => isAtLeast(position, a[schema]))
  return { ...a, ...Object.fromEntries(later) }
}

/** True when `at` is not before `least`. Positions of different timelines cannot be compared: false. */
export const isAtLeast = (at: Position | undefined, least: Position | undefined): boolean =>
  least === undefined || (at !== undefined && at.timeline === least.timeline && at.number >= least.number)

export const isSamePosition = (a: Position | undefined, b: Position | undefined): boolean =>
  a?.timeline === b?.timeline && a?.number === b?.number
