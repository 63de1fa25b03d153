import type { Precedence } from '../../domain/terminator-precedence.js'

/** A terminator that can be reached. */
export interface Candidate {
  readonly id: string
  readonly precedence: Precedence
  /** Static and dynamic cost, and that of the path. */
  readonly cost: number
}

/** A dial for which a terminator is chosen. */
export interface Dial {
  readonly serviceId: string
  /** Empty: terminators without an instance. */
  readonly instanceId: string
  /** The terminator that the client used before; empty: none. */
  readonly stickinessToken: string
  /** Returns a number from 0 up to, but not including, 1. */
  random(): number
}

/** A way to choose among terminators. Each replica has one object for all services, which may keep state. */
export interface Strategy {
  /** Chooses one of the candidates, which all have the best precedence. Undefined: there are none. */
  choose<C extends Candidate>(candidates: readonly C[], dial: Dial): C | undefined
  /** The client receives the id of the chosen terminator, and presents it when it dials again. */
  readonly givesToken?: true
}

export const chooseAny = <C>(candidates: readonly C[], { random }: Pick<Dial, 'random'>): C | undefined =>
  candidates[Math.floor(random() * candidates.length)]
