import { type Context, Fault, type IdentityServiceService, type Methods, type Written } from '@overlay/rpc'
import { type WaitForFollowers, writeChanges } from '@overlay/store/change-log'
import { forgetWrongGuesses } from '@overlay/store/guesses'
import { newId } from '@overlay/store/kind-store'
import type { CredentialDeps } from '../credentials/credential-deps.js'
import { newRecoveryCodes, newSecondFactor, provisioningUrl } from '../domain/second-factor.js'
import {
  enrolledFactor,
  factorOf,
  type UsedCode,
  unverifiedFactor,
  verifiedFactor,
  writeWithCode,
} from '../mfa/codes.js'
import { touchIdentity } from '../store/identities.js'
import {
  completeSession,
  insertSecondFactor,
  lockSecondFactor,
  removeSecondFactor,
} from '../store/second-factors.js'
import type { MethodDeps } from './method-deps.js'

type SecondFactorDeps = CredentialDeps &
  Pick<MethodDeps, 'credentialFeed' | 'secondFactors' | 'totpIssuer' | 'waitForFollowers'>

/** The second factor of the caller, and, for an admin, of an identity. */
export function secondFactorMethods(deps: SecondFactorDeps) {
  const { changeLog, secondFactors, totpIssuer } = deps
  const { db } = changeLog
  return {
    /** The second factor of the caller, with its secret until it is verified. */
    async getMfa(_request, { caller, deadline }) {
      const stored = factorOf(await db.transaction(deadline, (tx) => lockSecondFactor(tx, caller.identityId)))
      const { id, isVerified, identityName } = stored
      const times = { createdAtMs: stored.createdAt.getTime(), updatedAtMs: stored.updatedAt.getTime() }
      if (isVerified) return { id, isVerified, provisioningUrl: '', recoveryCodes: [], ...times }
      const { secret, recoveryCodes } = secondFactors.open(stored)
      const url = provisioningUrl(secret, totpIssuer, identityName)
      return { id, isVerified, provisioningUrl: url, recoveryCodes: [...recoveryCodes], ...times }
    },

    /** Creates the second factor of the caller. It takes effect with its first code. */
    async startMfa(_request, context) {
      const { identityId } = context.caller
      const id = newId('short')
      const position = await writeChanges(changeLog, context, async (tx) => {
        const sealed = secondFactors.seal(identityId, newSecondFactor())
        const inserted = await insertSecondFactor(tx, { id, identityId, sealed })
        if (!inserted) throw new Fault('MFA_EXISTS')
        return [inserted]
      })
      return { id, position }
    },

    /** Verifies a new second factor by a code of the app. It completes the session, too. */
    async verifyMfa({ code }, context) {
      const { identityId, apiSessionId } = context.caller
      const use = { code, accepted: 'app', requires: unverifiedFactor } as const
      const { stored, position } = await writeWithCode(deps, context, use, async (tx, factor, save) => {
        const completed = await completeSession(tx, apiSessionId)
        const shown = await touchIdentity(tx, identityId)
        return [...completed, ...(shown ? [shown] : []), await save(factor, true)]
      })
      await deps.credentialFeed.deliver()
      return shownByPolicy(deps, { id: stored.id, position }, context)
    },

    /** Completes the API session of the caller by a code. */
    async passMfa({ code }, context) {
      return passWithCode(deps, { code, accepted: 'any', requires: enrolledFactor }, context)
    },

    /** The unused recovery codes of the caller, for a code of the app. */
    async listRecoveryCodes({ code }, context) {
      const use = { code, accepted: 'app', requires: verifiedFactor } as const
      const { stored, factor } = await writeWithCode(deps, context, use)
      const times = { createdAtMs: stored.createdAt.getTime(), updatedAtMs: stored.updatedAt.getTime() }
      return { id: stored.id, codes: [...factor.recoveryCodes], ...times }
    },

    async renewRecoveryCodes({ code }, context) {
      const use = { code, accepted: 'any', requires: verifiedFactor } as const
      const { stored, position } = await writeWithCode(deps, context, use, async (_tx, factor, save) => [
        await save({ ...factor, recoveryCodes: newRecoveryCodes() }),
      ])
      return { id: stored.id, position }
    },

    /** Removes the second factor of the caller, once it is verified only for a code. */
    async removeMfa({ code }, context) {
      const { changeLog, credentialFeed } = deps
      const { identityId } = context.caller
      // under its lock: it may be about to be verified
      const unverified = await changeLog.write(context, async (tx) => {
        const { isVerified } = factorOf(await lockSecondFactor(tx, identityId))
        return { result: !isVerified, changes: isVerified ? [] : await removeSecondFactor(tx, identityId) }
      })
      const { position } = unverified.result
        ? unverified
        : await writeWithCode(deps, context, { code, accepted: 'any', requires: verifiedFactor }, (tx) =>
            removeSecondFactor(tx, identityId),
          )
      await credentialFeed.deliver()
      return shownByPolicy(deps, { id: identityId, position }, context, 'sessions')
    },

    /** Removes the second factor of an identity, for an admin, and ends its pauses. */
    async removeMfaOf({ id }, context) {
      const position = await writeChanges(deps.changeLog, context, async (tx) => {
        await forgetWrongGuesses(tx, 'code', [id])
        return removeSecondFactor(tx, id)
      })
      return shownByPolicy(deps, { id, position }, context, 'sessions')
    },
  } satisfies Partial<Methods<IdentityServiceService>>
}

/** Completes the API session of the caller by a code. */
export async function passWithCode(
  deps: Pick<SecondFactorDeps, 'credentialFeed' | 'waitForFollowers'> & Parameters<typeof writeWithCode>[0],
  use: UsedCode,
  context: Context,
): Promise<FactorWritten> {
  const { stored, position } = await writeWithCode(deps, context, use, async (tx, factor, save) => [
    ...(await completeSession(tx, context.caller.apiSessionId)),
    await save(factor),
  ])
  await deps.credentialFeed.deliver()
  return shownByPolicy(deps, { id: stored.id, position }, context)
}

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
