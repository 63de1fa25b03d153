import { authenticator, identity } from '@overlay/model'
import { ownContext } from '@overlay/rpc'
import { noBus, openChangeLog, type RowChange } from '@overlay/store/change-log'
import { createdValues, insertRow, newId } from '@overlay/store/kind-store'
import { openDatabase, type Tx } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import { defaultHashing, type HashSettings, openHashing } from './credentials/hashing.js'
import { brokenByName, noRules, randomPassword, soundPassword } from './domain/passwords.js'
import { defaultAdminUsername, lockDefaultAdmin } from './store/admins.js'

export { type ResetOptions, type ResetResult, resetPassword } from './password-command/reset-password.js'

export interface InitOptions {
  readonly databaseUrl: string
  readonly username: string
  /** Absent: a random one, which the result contains. */
  readonly password?: string
  /** Called with a random one before it is stored, because the answer of the database may be lost. */
  readonly keepPassword?: (password: string) => Promise<void>
  readonly name?: string
  readonly hashing?: HashSettings
  readonly log: Logger
}

export interface InitResult {
  /** False: there is a default admin already, and nothing has changed. */
  readonly created: boolean
  readonly username: string
  /** Only a random one of a new default admin. */
  readonly password?: string
}

/** Creates the default admin unless there is one. Any number of processes may call it at once: one creates it. */
export async function initIdentity(options: InitOptions): Promise<InitResult> {
  const { databaseUrl, username, name = 'Default Admin', hashing = defaultHashing, log } = options
  refuseNames(name, username)
  const password =
    options.password === undefined
      ? randomPassword(noRules)
      : soundPassword(options.password, noRules, (reason) => new Error(`default admin: ${reason}`))
  await using db = openDatabase(databaseUrl, 'identity', { max: 2 })
  const existing = await defaultAdminUsername(db)
  if (existing !== undefined) return { created: false, username: existing }

  if (options.password === undefined) await options.keepPassword?.(password)
  await using changeLog = await openChangeLog(db, noBus, log)
  const hashed = await openHashing(hashing).hash(password, { source: '', name: '' })
  const { result: created } = await changeLog.write(ownContext(new AbortController().signal), async (tx) => {
    await lockDefaultAdmin(tx)
    if ((await defaultAdminUsername(tx)) !== undefined) return { result: false, changes: [] }
    return { result: true, changes: await insertAdmin(tx, name, username, hashed) }
  })
  if (!created) return { created, username: (await defaultAdminUsername(db)) ?? username }
  log.info({ name, username }, 'default administrator created')
  return { created, username, ...(options.password === undefined && { password }) }
}

function refuseNames(name: string, username: string): void {
  const reason = brokenByName(username)
  if (reason) throw new Error(`default admin: ${reason}`)
  if (name.length < 4 || name.length > 100)
    throw new Error('default admin: the name should have 4 to 100 chars')
}

async function insertAdmin(tx: Tx, name: string, username: string, password: string): Promise<RowChange[]> {
  const identityId = newId(identity.ids)
  const person = createdValues(identity, { name, type: 'Default', isAdmin: true }).values
  const credential = createdValues(authenticator, { method: 'updb', identityId, username, password }).values
  return [
    await insertRow(tx, identity, identityId, { ...person, isDefaultAdmin: true }, {}),
    await insertRow(tx, authenticator, newId('short'), credential, {}),
  ]
}
