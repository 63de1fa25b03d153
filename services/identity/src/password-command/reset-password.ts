import { authenticator, authPolicy } from '@overlay/model'
import { type Context, Fault, ownContext, system } from '@overlay/rpc'
import { noBus, openChangeLog, type RowChange } from '@overlay/store/change-log'
import { countRightGuess } from '@overlay/store/guesses'
import { changeRow, createdValues, insertRow, newId, uniqueFault } from '@overlay/store/kind-store'
import { openDatabase, type Tx } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import sql from 'sql-template-tag'
import { defaultHashing, type HashSettings, openHashing } from '../credentials/hashing.js'
import { isDisabled } from '../domain/disabled.js'
import { brokenByName, randomPassword, soundPassword } from '../domain/passwords.js'
import { guessOf } from '../login/refusals.js'
import { adminBy, type FoundAdmin } from '../store/admins.js'
import { enableIdentity } from '../store/identity-state.js'
import { forgetFailuresOf } from '../store/password-attempts.js'
import { removeSecondFactor } from '../store/second-factors.js'
import { endSessionsOfAuthenticator } from '../store/session-ends.js'

export interface ResetOptions {
  readonly databaseUrl: string
  /** User name or name of an administrator; absent: the default admin. */
  readonly name?: string | undefined
  /** Absent: a random one, which the result contains. */
  readonly password?: string | undefined
  /** Of a new authenticator, if the administrator has no password. */
  readonly username: string
  readonly removeSecondFactor: boolean
  /** Lets the auth policy of the administrator allow passwords, without a token of an external signer. */
  readonly allowPasswords: boolean
  /** The user of this machine, for the audit. */
  readonly operator: string
  readonly hashing?: HashSettings
  readonly log: Logger
}

export interface ResetResult {
  readonly username: string
  readonly isDefaultAdmin: boolean
  /** Only a random one. */
  readonly password?: string
  readonly endedSessions: number
  readonly wasDisabled: boolean
  /** Logins ask for its codes. */
  readonly hasSecondFactor: boolean
  readonly removedSecondFactor: boolean
  /** The name of the external signer whose token logins ask for. */
  readonly secondSigner?: string
  /** The name of the auth policy that allows passwords now. */
  readonly changedPolicy?: string
}

/**
 * Sets a new password of an administrator, in one transaction with the end of the sessions that the former one opened.
 * Enables the identity, and ends pauses of its user name and codes. Running services learn of it from the change log.
 */
export async function resetPassword(options: ResetOptions): Promise<ResetResult> {
  const { databaseUrl, name, operator, hashing = defaultHashing, log } = options
  await using db = openDatabase(databaseUrl, 'identity', { max: 2 })
  const admin = await adminBy(db, name)
  if (!admin)
    throw new Error(name === undefined ? 'there is no default administrator' : `no administrator '${name}'`)
  if (!admin.isPasswordAllowed && !options.allowPasswords)
    throw new Error(
      `the auth policy '${admin.authPolicyName}' of '${admin.identityName}' does not allow passwords: name another administrator, who can change it, or use --allow-passwords`,
    )
  const username = admin.username ?? options.username
  const badName = admin.username === null ? brokenByName(username) : undefined
  if (badName) throw new Error(badName)
  const rules = admin.passwordRules
  const password =
    options.password === undefined ? randomPassword(rules) : soundPassword(options.password, rules)

  await using changeLog = await openChangeLog(db, noBus, log)
  const hash = await openHashing(hashing).hash(password, { source: '', name: '' })
  try {
    const { result } = await changeLog.write(contextOf(operator), async (tx) => {
      const set = await setPassword(tx, admin, username, hash)
      const enabled = isDisabled(admin, new Date()) ? [await enableIdentity(tx, admin.identityId)] : []
      await forgetFailuresOf(tx, admin.identityId)
      // however many networks guess meanwhile, the login from this machine is not paused
      for (const sourceAddress of ['127.0.0.1', '::1'])
        await countRightGuess(tx, guessOf('password', { sourceAddress }, username))
      const policy = options.allowPasswords ? await allowPasswords(tx, admin) : []
      const removed = options.removeSecondFactor ? await removeSecondFactor(tx, admin.identityId) : []
      const result: ResetResult = {
        username,
        isDefaultAdmin: admin.isDefaultAdmin,
        endedSessions: set.filter(({ kind }) => kind === 'api-sessions').length,
        wasDisabled: enabled.length > 0,
        hasSecondFactor: admin.hasSecondFactor && !options.removeSecondFactor,
        removedSecondFactor: removed.length > 0,
        ...(policy.length > 0 && { changedPolicy: admin.authPolicyName }),
        ...(policy.length === 0 && admin.secondSigner !== null && { secondSigner: admin.secondSigner }),
      }
      return { result, changes: [...set, ...enabled, ...removed, ...policy] }
    })
    log.info({ username, operator }, 'password of an administrator set on this machine')
    return { ...result, ...(options.password === undefined && { password }) }
  } catch (err) {
    const fault = uniqueFault(authenticator, err) ?? err
    if (fault instanceof Fault && admin.username === null)
      throw new Error(`the user name '${username}' belongs to another identity: choose one with --username`, {
        cause: err,
      })
    throw err
  }
}

async function setPassword(
  tx: Tx,
  { identityId, authenticatorId }: FoundAdmin,
  username: string,
  password: string,
): Promise<RowChange[]> {
  if (authenticatorId !== null) {
    const change = await changeRow(
      tx,
      authenticator,
      sql`id = ${authenticatorId}`,
      sql`password = ${password}`,
    )
    if (change) return [change, ...(await endSessionsOfAuthenticator(tx, authenticatorId))]
  }
  const { values } = createdValues(authenticator, { method: 'updb', identityId, username, password })
  return [await insertRow(tx, authenticator, newId('short'), values, {})]
}

/** For an administrator who could log in only by what is lost. */
async function allowPasswords(
  tx: Tx,
  { authPolicyId, isPasswordAllowed, secondSigner }: FoundAdmin,
): Promise<RowChange[]> {
  if (isPasswordAllowed && secondSigner === null) return []
  const sets = sql`primary_updb_allowed = true, secondary_require_ext_jwt_signer = null`
  const change = await changeRow(tx, authPolicy, sql`id = ${authPolicyId}`, sets)
  return change ? [change] : []
}

/** The audit shows the user of this machine instead of an API session. */
const contextOf = (operator: string): Context => ({
  ...ownContext(new AbortController().signal),
  caller: { ...system, identityName: operator },
  requestId: 'admin-password',
})
