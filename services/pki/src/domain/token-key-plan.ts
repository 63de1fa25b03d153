import { KEYS_CACHED_MS, SESSION_TOKEN_MS, TOKEN_KEY_EXTRA_MS } from '../limits.js'
import { isPublished, keyOf, type PlannedKey, type Step, type TokenRole, tokenRoles } from './planned-key.js'

export interface TokenKeyRules {
  /** How long a key signs. */
  readonly periodMs: number
  /** The longest life of a token of OpenID Connect. */
  readonly tokenMs: number
  /** Keys that were created before are replaced at once. */
  readonly since: Date | undefined
}

/** The first step that is due for the keys of tokens. A key that the operator has provided is not replaced. */
export function dueTokenStep(all: readonly PlannedKey[], rules: TokenKeyRules, now: Date): Step | undefined {
  for (const role of tokenRoles) {
    const step = dueStepOf(role, all, rules, now)
    if (step) return step
  }
  return undefined
}

function dueStepOf(
  which: TokenRole,
  all: readonly PlannedKey[],
  rules: TokenKeyRules,
  now: Date,
): Step | undefined {
  const keys = all.filter(({ role }) => role === which)
  const since = rules.since && rules.since <= now ? rules.since : undefined
  const isTrusted = ({ createdAt }: PlannedKey): boolean => !since || createdAt >= since
  const isOver = (key: PlannedKey): boolean => {
    const end = tokensUntil(key, rules, now)
    return key.state === 'retired' && end.getTime() + TOKEN_KEY_EXTRA_MS < now.getTime()
  }
  const over = keys.find((key) => !isTrusted(key) || isOver(key))
  if (over) return { step: 'remove', id: over.id }

  const active = keyOf(keys, which, 'active')
  const next = keyOf(keys, which, 'next')
  if (!active) return next ? { step: 'activate', id: next.id } : { step: 'add', role: which, state: 'active' }
  if (active.source === 'provided') return undefined
  if (!next) return { step: 'add', role: which, state: 'next' }
  const isDue = rotationOf(active, rules) <= now && isPublished(next, KEYS_CACHED_MS, now)
  return next.source === 'generated' && isDue ? { step: 'activate', id: next.id } : undefined
}

/** When the last token of a key ends, at the latest. */
export const tokensUntil = (
  { role, retiredAt }: Pick<PlannedKey, 'role' | 'retiredAt'>,
  { tokenMs }: Pick<TokenKeyRules, 'tokenMs'>,
  now: Date,
): Date => new Date((retiredAt ?? now).getTime() + (role === 'session' ? SESSION_TOKEN_MS : tokenMs))

/** When the active key is to be replaced. */
export const rotationOf = (
  { activeAt }: Pick<PlannedKey, 'activeAt'>,
  { periodMs }: Pick<TokenKeyRules, 'periodMs'>,
): Date => new Date((activeAt ?? new Date()).getTime() + periodMs)
