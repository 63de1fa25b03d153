/** A key that signs tokens, without the key itself. */
export interface TokenKeyState {
  readonly id: string
  readonly state: 'next' | 'active' | 'retired'
  readonly createdAt: Date
  readonly activeAt: Date | null
  readonly retiredAt: Date | null
}

export interface TokenKeyRules {
  /** How long a key signs. */
  readonly periodMs: number
  /** The longest life of a token. */
  readonly tokenMs: number
  /** Keys that were created before are replaced at once. */
  readonly since: Date | undefined
}

/** What to do, in this order. */
export interface TokenKeyPlan {
  readonly remove: readonly string[]
  readonly retire: readonly string[]
  readonly activate: readonly string[]
  readonly add: readonly ('active' | 'next')[]
}

/** How long others may keep the published keys. The next key is published at least as long before it signs. */
export const KEYS_CACHED_MS = 3_600_000

/** A retired key stays longer than its tokens: replicas learn of its retirement late, and clocks differ. */
const RETIRED_EXTRA_MS = 3_600_000

/** The steps to the keys that there should be at a time. */
export function planTokenKeys(keys: readonly TokenKeyState[], rules: TokenKeyRules, now: Date): TokenKeyPlan {
  const since = rules.since && rules.since <= now ? rules.since : undefined
  const isTrusted = ({ createdAt }: TokenKeyState): boolean => !since || createdAt >= since
  const isOver = ({ retiredAt }: TokenKeyState): boolean =>
    retiredAt !== null && retiredAt.getTime() + rules.tokenMs + RETIRED_EXTRA_MS < now.getTime()
  const remove = keys.filter((key) => !isTrusted(key) || isOver(key)).map(({ id }) => id)

  const only = (state: TokenKeyState['state']): TokenKeyState | undefined =>
    keys.find((key) => key.state === state && isTrusted(key))
  const active = only('active')
  const next = only('next')
  if (!active)
    return next
      ? { remove, retire: [], activate: [next.id], add: ['next'] }
      : { remove, retire: [], activate: [], add: ['active', 'next'] }
  if (!next) return { remove, retire: [], activate: [], add: ['next'] }
  return isDue(active, next, rules, now)
    ? { remove, retire: [active.id], activate: [next.id], add: ['next'] }
    : { remove, retire: [], activate: [], add: [] }
}

/** When the active key is to be replaced. */
export const rotationOf = ({ activeAt }: TokenKeyState, { periodMs }: TokenKeyRules): Date =>
  new Date((activeAt ?? new Date()).getTime() + periodMs)

const isDue = (active: TokenKeyState, next: TokenKeyState, rules: TokenKeyRules, now: Date): boolean =>
  rotationOf(active, rules) <= now && next.createdAt.getTime() + KEYS_CACHED_MS <= now.getTime()
