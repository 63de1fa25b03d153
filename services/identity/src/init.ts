import { randomBytes } from 'node:crypto'
import { authenticator, type Entity, identity } from '@overlay/model'
import { noBus, openChangeLog, type RowChange } from '@overlay/platform/change-log'
import {
  type AnyValues,
  changeOf,
  createdValues,
  insertSql,
  newId,
  rowOf,
} from '@overlay/platform/kind-store'
import { type Db, onlyRow, openDatabase, type Tx } from '@overlay/platform/postgres'
import { ownContext } from '@overlay/rpc'
import type { Logger } from 'pino'
import sql from 'sql-template-tag'
import { type HashSettings, openHashing } from './credentials/hashing.js'
import { brokenRule } from './domain/passwords.js'

export { type ResealOptions, resealSecondFactors } from './reseal.js'

export interface InitOptions {
  readonly databaseUrl: string
  readonly username: string
  /** Absent: one is made, and told once. */
  readonly password?: string
  readonly name?: string
  readonly hashing?: HashSettings
  readonly log: Logger
}

export interface InitResult {
  /** False: there was a default admin already; nothing has changed. */
  readonly created: boolean
  readonly username: string
  /** Only when it was made just now. */
  readonly password?: string
}

const defaultHashing = { memoryKib: 19_456, passes: 2, lanes: 1, running: 1, waiting: 1 }

/** Makes the default admin where there is none. Any number of processes may call it at once: one makes it. */
export async function initIdentity(options: InitOptions): Promise<InitResult> {
  const { databaseUrl, username, name = 'Default Admin', hashing = defaultHashing, log } = options
  const password = options.password ?? randomBytes(18).toString('base64url')
  refuseBroken(name, username, password)
  await using db = openDatabase(databaseUrl, 'identity', { max: 2 })
  const known = await adminOf(db)
  if (known !== undefined) return { created: false, username: known }

  await using changeLog = await openChangeLog(db, noBus, log)
  const hashed = await openHashing(hashing).hash(password, { source: '', name: '' })
  const { result: created } = await changeLog.write(ownContext(new AbortController().signal), async (tx) => {
    await tx.query(sql`select pg_advisory_xact_lock(hashtextextended('default admin', 0))`)
    if ((await adminOf(tx)) !== undefined) return { result: false, changes: [] }
    return { result: true, changes: await insertAdmin(tx, name, username, hashed) }
  })
  if (!created) return { created, username: (await adminOf(db)) ?? username }
  log.info({ name, username }, 'default admin made')
  return { created, username, ...(options.password === undefined && { password }) }
}

function refuseBroken(name: string, username: string, password: string): void {
  const broken = brokenRule(username, password, {
    minPasswordLength: 0,
    requireMixedCase: false,
    requireNumberChar: false,
    requireSpecialChar: false,
  })
  if (broken) throw new Error(`default admin: ${broken.reason}`)
  if (name.length < 4 || name.length > 100)
    throw new Error('default admin: the name should have 4 to 100 chars')
}

/** The user name of the default admin; empty when it has none. */
async function adminOf(db: Db): Promise<string | undefined> {
  const { rows } = await db.query<{ username: string }>(sql`
    select coalesce(a.username, '') as username
      from identity i left join authenticator a on a.identity_id = i.id and a.method = 'updb'
     where i.is_default_admin limit 1`)
  return rows[0]?.username
}

async function insertAdmin(tx: Tx, name: string, username: string, password: string): Promise<RowChange[]> {
  const identityId = newId(identity.ids)
  const person = createdValues(identity, { name, type: 'Default', isAdmin: true }).values
  const proof = createdValues(authenticator, { method: 'updb', identityId, username, password }).values
  return [
    await inserted(tx, identity, identityId, { ...person, isDefaultAdmin: true }),
    await inserted(tx, authenticator, newId('short'), proof),
  ]
}

async function inserted(tx: Tx, entity: Entity, id: string, values: AnyValues): Promise<RowChange> {
  const { rows } = await tx.query(insertSql(entity, id, values, {}))
  return changeOf(entity, id, null, rowOf(entity, onlyRow(rows)))
}
