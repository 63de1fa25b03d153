import { type Candidate, chooseAny, type Dial, type Strategy } from './strategy.js'

/** The terminator with the least cost. differs: of equal costs one is chosen at random. */
export const openSmartrouting = (): Strategy => ({ choose: chooseCheapest })

export function chooseCheapest<C extends Candidate>(candidates: readonly C[], dial: Dial): C | undefined {
  const least = Math.min(...candidates.map(({ cost }) => cost))
  return chooseAny(
    candidates.filter(({ cost }) => cost === least),
    dial,
  )
}
