import type { ChangeLog, RowChange, WaitForFollowers } from '@overlay/platform/change-log'
import { newId } from '@overlay/platform/kind-store'
import { seal, type Tx, unseal } from '@overlay/platform/postgres'
import { type Context, Fault, type IdentityServiceService, type Methods, type Written } from '@overlay/rpc'
import sql from 'sql-template-tag'
import {
  newRecoveryCodes,
  newSecondFactor,
  type Passed,
  passedBy,
  provisioningUrl,
  type SecondFactor,
  stepsAround,
} from '../domain/second-factor.js'
import { changeIdentity } from '../store/identities.js'
import {
  countWrongCode,
  deleteSecondFactor,
  insertSecondFactor,
  keepSecondFactor,
  type Stored,
  secondFactorChange,
  secondFactorOf,
  setFactors,
} from '../store/second-factors.js'

type Calls = Pick<
  Methods<IdentityServiceService>,
  | 'startMfa'
  | 'getMfa'
  | 'verifyMfa'
  | 'passMfa'
  | 'listRecoveryCodes'
  | 'renewRecoveryCodes'
  | 'removeMfa'
  | 'removeMfaOf'
>

export interface SecondFactorsOptions {
  readonly changeLog: ChangeLog
  readonly keySecret: string
  /** What authenticator apps call the network. */
  readonly issuer: string
  /** After a code was given, or counts no more: what posture checks know of it. */
  readonly settled: WaitForFollowers
  readonly now?: () => number
}

/** What a right code leads to: row changes, and what is different in the factor itself. */
interface Outcome {
  readonly changes: readonly RowChange[]
  readonly factor?: Partial<SecondFactor>
  readonly isVerified?: true
}

/** Second factors: of their owners, and removed by admins. */
export function secondFactors({
  changeLog,
  keySecret,
  issuer,
  settled,
  now = Date.now,
}: SecondFactorsOptions): Calls {
  const sealed = (identityId: string, factor: SecondFactor): string =>
    seal(keySecret, identityId, JSON.stringify(factor))
  const opened = ({ identityId, sealed: text }: Stored): SecondFactor =>
    JSON.parse(unseal(keySecret, identityId, text)) as SecondFactor

  /** One try of a code. Wrong ones are counted, and committed, before the caller hears of it. */
  async function withCode(
    context: Context,
    code: string,
    check: (stored: Stored | undefined) => Stored,
    accepts: (passed: Passed) => boolean,
    then: (tx: Tx, stored: Stored, factor: SecondFactor) => Promise<Outcome>,
  ): Promise<{ readonly stored: Stored; readonly written: Written }> {
    const { result, position } = await changeLog.write(context, async (tx) => {
      const stored = check(await secondFactorOf(tx, context.caller.identityId))
      const before = opened(stored)
      const at = now()
      const passed = stored.isPaused ? undefined : passedBy(code, before, stored.usedSteps, at)
      if (!passed || !accepts(passed)) {
        if (!stored.isPaused) await countWrongCode(tx, stored)
        return { result: undefined, changes: [] }
      }
      const left =
        'recoveryCode' in passed
          ? before.recoveryCodes.filter((one) => one !== passed.recoveryCode)
          : before.recoveryCodes
      const {
        changes,
        factor,
        isVerified = stored.isVerified,
      } = await then(tx, stored, { ...before, recoveryCodes: left })
      const after = { ...stored, isVerified, usedSteps: stepsUsed(stored.usedSteps, passed, at) }
      await keepSecondFactor(tx, {
        ...after,
        sealed: sealed(stored.identityId, { ...before, recoveryCodes: left, ...factor }),
      })
      return { result: stored, changes: [...changes, secondFactorChange(stored, stored, after)] }
    })
    if (!result) throw new Fault('MFA_INVALID_TOKEN')
    return { stored: result, written: { id: result.id, position } }
  }

  const own = (context: Context): Promise<Stored | undefined> =>
    changeLog.db.transaction(context.deadline, (tx) => secondFactorOf(tx, context.caller.identityId))

  const completing =
    (context: Context) =>
    async (tx: Tx): Promise<Outcome> => ({
      changes: await setFactors(
        tx,
        sql`id = ${context.caller.apiSessionId}`,
        sql`is_mfa_required = true, is_mfa_complete = true, mfa_passed_at = clock_timestamp()`,
      ),
    })

  async function remove(context: Context, identityId: string, isOwn: boolean): Promise<Written> {
    const { position } = await changeLog.write(context, async (tx) => {
      const { rows } = await deleteSecondFactor(tx, identityId)
      const [gone] = rows
      if (!gone) return { result: undefined, changes: [] }
      // differs: sessions that wait for it would wait for ever
      const freed = await setFactors(
        tx,
        sql`identity_id = ${identityId} and is_mfa_required and not is_mfa_complete`,
        sql`is_mfa_required = false`,
      )
      // wire: codes that were given count on when an admin removes it
      const forgotten = isOwn
        ? await setFactors(
            tx,
            sql`identity_id = ${identityId} and mfa_passed_at is not null`,
            sql`mfa_passed_at = null`,
          )
        : []
      return {
        result: undefined,
        changes: [
          ...freed,
          ...forgotten,
          secondFactorChange({ ...gone, identityId }, gone, null),
          ...(await shown(tx, identityId)),
        ],
      }
    })
    return settled({ id: identityId, position }, context)
  }

  return {
    async startMfa(_request, context) {
      const { identityId } = context.caller
      const id = newId('short')
      const { position } = await changeLog.write(context, async (tx) => {
        const isNew = await insertSecondFactor(tx, {
          id,
          identityId,
          sealed: sealed(identityId, newSecondFactor()),
        })
        if (!isNew) throw new Fault('MFA_EXISTS')
        return {
          result: undefined,
          changes: [secondFactorChange({ id, identityId }, null, { isVerified: false })],
        }
      })
      return { id, position }
    },

    async getMfa(_request, context) {
      const stored = known(await own(context))
      const { id, isVerified, identityName } = stored
      const times = { createdAtMs: stored.createdAt.getTime(), updatedAtMs: stored.updatedAt.getTime() }
      if (isVerified) return { id, isVerified, provisioningUrl: '', recoveryCodes: [], ...times }
      const { secret, recoveryCodes } = opened(stored)
      const url = provisioningUrl(secret, issuer, identityName)
      return { id, isVerified, provisioningUrl: url, recoveryCodes: [...recoveryCodes], ...times }
    },

    async verifyMfa({ code }, context) {
      const { written } = await withCode(context, code, unverified, isOfApp, async (tx, { identityId }) => {
        const { changes } = await completing(context)(tx)
        return { changes: [...changes, ...(await shown(tx, identityId))], isVerified: true }
      })
      return settled(written, context)
    },

    async passMfa({ code }, context) {
      const { written } = await withCode(context, code, enrolled, either, completing(context))
      return settled(written, context)
    },

    async listRecoveryCodes({ code }, context) {
      let codes: readonly string[] = []
      const { stored } = await withCode(
        context,
        code,
        verified,
        isOfApp,
        async (_tx, _stored, { recoveryCodes }) => {
          codes = recoveryCodes
          return { changes: [] }
        },
      )
      const times = { createdAtMs: stored.createdAt.getTime(), updatedAtMs: stored.updatedAt.getTime() }
      return { id: stored.id, codes: [...codes], ...times }
    },

    async renewRecoveryCodes({ code }, context) {
      const renewed = { changes: [], factor: { recoveryCodes: newRecoveryCodes() } }
      return (await withCode(context, code, verified, either, async () => renewed)).written
    },

    async removeMfa({ code }, context) {
      const stored = known(await own(context))
      if (stored.isVerified) await withCode(context, code, verified, either, async () => ({ changes: [] }))
      return remove(context, context.caller.identityId, true)
    },

    removeMfaOf: ({ id }, context) => remove(context, id, false),
  }
}

/** Identities show whether they have one. */
async function shown(tx: Tx, identityId: string): Promise<RowChange[]> {
  const change = await changeIdentity(tx, identityId, sql`name = name`)
  return change ? [change] : []
}

const either = (): boolean => true
const isOfApp = (passed: Passed): boolean => 'step' in passed

function known(stored: Stored | undefined): Stored {
  if (!stored) throw new Fault('NOT_FOUND')
  return stored
}
function enrolled(stored: Stored | undefined): Stored {
  if (!stored) throw new Fault('MFA_NOT_ENROLLED')
  return stored
}
function verified(stored: Stored | undefined): Stored {
  if (!stored?.isVerified) throw new Fault('NOT_FOUND')
  return stored
}
function unverified(stored: Stored | undefined): Stored {
  if (!stored || stored.isVerified) throw new Fault('NOT_FOUND')
  return stored
}

function stepsUsed(before: readonly number[], passed: Passed, nowMs: number): number[] {
  const [oldest = 0] = stepsAround(nowMs)
  return [...before, ...('step' in passed ? [passed.step] : [])].filter((step) => step >= oldest)
}
