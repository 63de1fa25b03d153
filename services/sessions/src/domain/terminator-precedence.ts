const precedences = ['required', 'default', 'failed'] as const
/** Terminators of a better precedence, which is further to the front of `precedences`, are always preferred. */
export type Precedence = (typeof precedences)[number]

export const MAX_COST = 65_535

/** Those with the best precedence. */
export function bestOf<T extends { readonly precedence: Precedence }>(candidates: readonly T[]): T[] {
  const best = precedences.find((precedence) => candidates.some((one) => one.precedence === precedence))
  return candidates.filter(({ precedence }) => precedence === best)
}
