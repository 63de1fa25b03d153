/** The strategies of services. An empty one is `smartrouting`. */
export const strategies = ['smartrouting', 'weighted', 'random', 'sticky'] as const
export type Strategy = (typeof strategies)[number]

export const precedences = ['default', 'required', 'failed'] as const
export type Precedence = (typeof precedences)[number]

/** A terminator that can be reached. */
export interface Candidate {
  readonly id: string
  readonly precedence: Precedence
  /** Static and dynamic cost, and that of the path. */
  readonly cost: number
}

export interface Selection {
  readonly strategy: Strategy
  /** The terminator that the client used before; empty: none. */
  readonly stickinessToken: string
  /** Returns a number from 0 up to, but not including, 1. */
  random(): number
}

export const MAX_COST = 65_535

/** Costs of different precedences never overlap. */
const BAND = 4 * MAX_COST
const bands: Readonly<Record<Precedence, number>> = { required: 0, default: 1, failed: 2 }

/** Orders terminators: first by precedence, then by cost. */
export const biasedCost = ({ precedence, cost }: Omit<Candidate, 'id'>): number =>
  bands[precedence] * BAND + Math.min(cost, BAND - 1)

export const isStrategy = (name: string): name is Strategy => (strategies as readonly string[]).includes(name)

/** The terminator for a dial. Undefined: there are no candidates. differs: of equal costs one is chosen at random. */
export function selectTerminator<C extends Candidate>(
  candidates: readonly C[],
  selection: Selection,
): C | undefined {
  const best = Math.min(...candidates.map(({ precedence }) => bands[precedence]))
  const usable = candidates.filter(({ precedence }) => bands[precedence] === best)
  switch (selection.strategy) {
    case 'smartrouting':
      return cheapest(usable, selection)
    case 'random':
      return anyOf(usable, selection)
    case 'weighted':
      return weighted(usable, selection)
    case 'sticky':
      return usable.find(({ id }) => id === selection.stickinessToken) ?? cheapest(usable, selection)
  }
}

function cheapest<C extends Candidate>(usable: readonly C[], selection: Selection): C | undefined {
  const lowest = Math.min(...usable.map(biasedCost))
  return anyOf(
    usable.filter((candidate) => biasedCost(candidate) === lowest),
    selection,
  )
}

const anyOf = <C>(some: readonly C[], { random }: Selection): C | undefined =>
  some[Math.floor(random() * some.length)]

/**
 * The weight of a terminator is the share of the others in the total cost.
 * differs: the weights add up to one, so that the last of many terminators are chosen, too.
 */
function weighted<C extends Candidate>(usable: readonly C[], selection: Selection): C | undefined {
  if (usable.length < 2) return usable[0]
  const costs = usable.map(({ cost }) => Math.min(Math.max(cost, 1), BAND - 1))
  const total = costs.reduce((sum, cost) => sum + cost, 0)
  let left = selection.random() * (usable.length - 1)
  const at = costs.findIndex((cost) => {
    left -= 1 - cost / total
    return left < 0
  })
  return usable[at] ?? usable.at(-1)
}
