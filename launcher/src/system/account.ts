import { chmod, chown, lchown, readdir, readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** The user and group of a process; empty: those of the launcher. */
export interface Account {
  readonly uid?: number
  readonly gid?: number
}

/** The accounts of processes that root starts. Postgres has its own account, which owns only the database. */
export interface Accounts {
  readonly processes: Account
  readonly database: Account
}

/** Linux distributions, systemd and containers do not assign this id and the next. */
export const DEFAULT_UID = 61_000

/** @param uid the first of two ids; 0: the processes keep the rights of root, which Postgres does not allow itself */
export function accountsOf(uid: number): Accounts {
  if (process.getuid?.() !== 0) return { processes: {}, database: {} }
  const gid = uid || DEFAULT_UID
  return { processes: uid === 0 ? {} : { uid, gid }, database: { uid: gid + 1, gid: gid + 1 } }
}

/** The owner of an existing database, or `account` for a new one. */
export async function ownerOf(data: string, account: Account): Promise<Account> {
  if (process.getuid?.() !== 0) return {}
  const owner = await stat(data).catch(() => undefined)
  return owner && owner.uid !== 0 ? { uid: owner.uid, gid: owner.gid } : account
}

export async function chownTo(path: string, { uid, gid }: Account): Promise<void> {
  if (uid !== undefined && gid !== undefined) await chown(path, uid, gid)
}

export async function chownAll(path: string, { uid, gid }: Account): Promise<void> {
  if (uid === undefined || gid === undefined) return
  for (const entry of await readdir(path, { recursive: true })) await lchown(join(path, entry), uid, gid)
  await lchown(path, uid, gid)
}

/** Lets other accounts enter a directory of this product, and not read it. */
export async function admitAccounts(directory: string): Promise<void> {
  const { mode } = await stat(directory)
  if ((mode & 0o011) !== 0o011) await chmod(directory, (mode & 0o7777) | 0o011)
}

/** Refuses a directory with other files than those of the product, whose modes and owners must not change. */
export async function refuseOtherFiles(directory: string, own: RegExp): Promise<void> {
  const other = (await readdir(directory)).find((name) => !own.test(name))
  if (other !== undefined)
    throw new Error(`${directory} has files of other programs (${other}): move them away`)
}

/** An account with a name, which initdb requires, in the group of `account`. */
export async function namedAccount({ uid, gid }: Account): Promise<Account> {
  if (uid === undefined || gid === undefined) return {}
  const users = await readFile('/etc/passwd', 'utf8')
  const nobody = users
    .split('\n')
    .find((line) => line.startsWith('nobody:'))
    ?.split(':')[2]
  return { uid: Number(nobody ?? 65_534), gid }
}

/** Whether `account` may enter every directory down to `path`. */
export async function isReachable(path: string, { uid, gid }: Account): Promise<boolean> {
  if (uid === undefined) return true
  for (let at = path; ; at = dirname(at)) {
    const { mode, uid: owner, gid: group } = await stat(at)
    const bit = owner === uid ? 0o100 : group === gid ? 0o010 : 0o001
    if ((mode & bit) === 0) return false
    if (at === dirname(at)) return true
  }
}

/** The directory of programs that the account of Postgres must reach. */
export const sharedCache = (home: string): string =>
  process.getuid?.() === 0 ? '/var/cache/overlay' : join(home, 'cache')
