import { metrics } from '@overlay/process'
import type { Logger } from 'pino'
import { concernOf, renewalOf } from '../domain/key-plan.js'
import type { PlannedKey } from '../domain/planned-key.js'
import type { TokenKeyRules } from '../domain/token-key-plan.js'
import { KEY_WARNING_MS } from '../limits.js'

/** Publishes when certificates expire, of several retired ones the first, and when keys are due. */
export function reportKeys(keys: readonly PlannedKey[], tokens: TokenKeyRules): void {
  metrics.certificateExpiry.reset()
  metrics.keyRenewal.reset()
  const last = [...keys].sort((a, b) => endOf(b) - endOf(a))
  for (const { role, state, certificate } of last)
    if (certificate) metrics.certificateExpiry.set({ role, state }, certificate.notAfter.getTime() / 1000)
  for (const key of keys) {
    const renewal = renewalOf(key, tokens)
    if (renewal) metrics.keyRenewal.set({ role: key.role }, renewal.getTime() / 1000)
  }
}

const endOf = ({ certificate }: PlannedKey): number => certificate?.notAfter.getTime() ?? 0

/** Warns once a day of each key that expires soon, or should have been replaced. */
export function keyWarnings(log: Pick<Logger, 'warn'>) {
  const warnedAt = new Map<string, number>()
  return (keys: readonly PlannedKey[], tokens: TokenKeyRules | undefined, now: Date): void => {
    for (const key of keys) {
      const concern = concernOf(key, tokens, now)
      const isRepeated = now.getTime() - (warnedAt.get(key.id) ?? Number.NEGATIVE_INFINITY) < KEY_WARNING_MS
      if (concern === undefined || isRepeated) continue
      warnedAt.set(key.id, now.getTime())
      const { id: keyId, role, state, source, certificate } = key
      log.warn(
        { keyId, role, state, source, concern, expiresAt: certificate?.notAfter },
        'key needs attention',
      )
    }
  }
}
