import type { Candidate, Dial, Strategy } from './strategy.js'

/**
 * At random by weight. The weight of a terminator is the share of the others in the total cost.
 * differs: the weights add up to one, so that the last of many terminators are chosen, too.
 */
export const openWeighted = (): Strategy => ({ choose: chooseByWeight })

function chooseByWeight<C extends Candidate>(candidates: readonly C[], { random }: Dial): C | undefined {
  if (candidates.length < 2) return candidates[0]
  const costs = candidates.map(({ cost }) => Math.max(cost, 1))
  const total = costs.reduce((sum, cost) => sum + cost, 0)
  let left = random() * (candidates.length - 1)
  const at = costs.findIndex((cost) => {
    left -= 1 - cost / total
    return left < 0
  })
  return candidates[at] ?? candidates.at(-1)
}
