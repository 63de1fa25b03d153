import type { TerminatorStrategy } from '@overlay/model'
import type { Precedence } from '../domain/terminator-precedence.js'

/** A terminator that can be reached. */
export interface Candidate {
  readonly id: string
  readonly precedence: Precedence
  /** Static and dynamic cost, and that of the path. */
  readonly cost: number
}

/** A dial for which a terminator is chosen. Service and instance are the key of what a strategy remembers. */
interface Dial {
  readonly serviceId: string
  /** Empty: terminators without an instance. */
  readonly instanceId: string
  /** The terminator that the client used before; empty: none. */
  readonly stickinessToken: string
  /** Returns a number from 0 up to, but not including, 1. */
  random(): number
}

/** A way to choose among terminators. */
export interface Strategy {
  /**
   * Chooses one of the candidates: those of the best precedence that can be reached from the dialing router and have not
   * failed in this dial, in no order that lasts. Undefined: there are none.
   */
  choose<C extends Candidate>(candidates: readonly C[], dial: Dial): C | undefined
  /** The client receives the id of the chosen terminator, and presents it when it dials again. */
  readonly givesToken?: true
}

const chooseAny = <C>(candidates: readonly C[], { random }: Pick<Dial, 'random'>): C | undefined =>
  candidates[Math.floor(random() * candidates.length)]

/** differs: of equal costs one is chosen at random. */
function chooseCheapest<C extends Candidate>(candidates: readonly C[], dial: Dial): C | undefined {
  const least = Math.min(...candidates.map(({ cost }) => cost))
  return chooseAny(
    candidates.filter(({ cost }) => cost === least),
    dial,
  )
}

/**
 * At random by weight. The weight of a terminator is the share of the others in the total cost.
 * differs: the weights add up to one, so that the last of many terminators are chosen, too.
 */
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

/** The strategies of one replica. One that keeps state has it in a closure; other replicas do not share it. */
export const openStrategies = (): Readonly<Record<TerminatorStrategy, Strategy>> => ({
  smartrouting: { choose: chooseCheapest },
  weighted: { choose: chooseByWeight },
  random: { choose: chooseAny },
  /** The terminator that the client used before, while it is a candidate; else the one with the least cost. */
  sticky: {
    choose: (candidates, dial) =>
      candidates.find(({ id }) => id === dial.stickinessToken) ?? chooseCheapest(candidates, dial),
    givesToken: true,
  },
})
