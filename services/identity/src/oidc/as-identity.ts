import type { Context } from '@overlay/rpc'

/** The context of a step of an identity that has no API session yet, for its codes and for the audit. */
export const asIdentity = (
  context: Context,
  { identityId, identityName }: { readonly identityId: string; readonly identityName?: string | null },
): Context => ({ ...context, caller: { ...context.caller, identityId, identityName: identityName ?? '' } })
