import type { Context, IdentityServiceService, Methods, Written } from '@overlay/rpc'
import type { WaitForFollowers } from '@overlay/store/change-log'

type FactorWritten = Awaited<ReturnType<Methods<IdentityServiceService>['passMfa']>>

/**
 * Returns a write when policy has applied it to posture checks, and the schemas in `next` what policy has written
 * because of it. The answer has that position of policy: memory there may show the write before its effects.
 */
export async function shownByPolicy(
  { waitForFollowers }: { readonly waitForFollowers: WaitForFollowers },
  written: Written,
  context: Context,
  ...next: readonly 'sessions'[]
): Promise<FactorWritten> {
  const { effects } = await waitForFollowers(written, context, [['policy', ...next]], { effects: ['policy'] })
  return { ...written, policy: effects?.policy }
}
