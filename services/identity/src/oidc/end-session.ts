import type { Context, Position } from '@overlay/rpc'
import { writeChanges } from '@overlay/store/change-log'
import { endBearerSession, endSessionsOfLogin } from '../store/oidc-grants.js'
import type { OidcDeps } from './oidc-deps.js'
import type { BearerClaims, IdClaims } from './tokens.js'

/** Ends the API session of a token, or the one itself. Then routers know, too. Undefined: it has ended before. */
export async function endSessionOf(
  deps: OidcDeps,
  claims: IdClaims | Pick<BearerClaims, 'apiSessionId' | 'identityId' | 'clientId'>,
  context: Context,
): Promise<Position | undefined> {
  const position = await writeChanges(deps.changeLog, asIdentity(context, claims), (tx) =>
    'authTimeSeconds' in claims ? endSessionsOfLogin(tx, claims) : endBearerSession(tx, claims),
  )
  if (position) await deps.waitForFollowers({ id: '', position }, context, ['sessions'])
  return position
}

/** The context of a step of an identity that has no API session yet, for its codes and for the audit. */
export const asIdentity = (
  context: Context,
  { identityId, identityName }: { readonly identityId: string; readonly identityName?: string | null },
): Context => ({ ...context, caller: { ...context.caller, identityId, identityName: identityName ?? '' } })
