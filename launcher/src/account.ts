import { chown, lchown, readdir, readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Whose rights a process has; empty: those of the launcher. */
export interface Account {
  readonly uid?: number
  readonly gid?: number
}

/** Of the processes that root starts. Postgres has one of its own, which owns nothing but the database. */
export interface Accounts {
  readonly processes: Account
  readonly database: Account
}

/** No user of Linux distributions, systemd or containers gets this id or the next by itself. */
export const DEFAULT_UID = 61_000

/** @param uid first of two ids; 0: only Postgres gives up the rights of root, because it must */
export function accountsOf(uid: number): Accounts {
  if (process.getuid?.() !== 0) return { processes: {}, database: {} }
  const gid = uid || DEFAULT_UID
  return { processes: uid === 0 ? {} : { uid, gid }, database: { uid: gid + 1, gid: gid + 1 } }
}

/** The owner of a database that is there already goes on with it; a new one is made for `account`. */
export async function ownerOf(data: string, account: Account): Promise<Account> {
  if (process.getuid?.() !== 0) return {}
  const owner = await stat(data).catch(() => undefined)
  return owner && owner.uid !== 0 ? { uid: owner.uid, gid: owner.gid } : account
}

export async function give(path: string, { uid, gid }: Account): Promise<void> {
  if (uid !== undefined && gid !== undefined) await chown(path, uid, gid)
}

export async function giveAll(path: string, { uid, gid }: Account): Promise<void> {
  if (uid === undefined || gid === undefined) return
  for (const entry of await readdir(path, { recursive: true })) await lchown(join(path, entry), uid, gid)
  await lchown(path, uid, gid)
}

/** An id that has a name, which initdb asks for, in the group of `account`. */
export async function namedIn({ uid, gid }: Account): Promise<Account> {
  if (uid === undefined || gid === undefined) return {}
  const users = await readFile('/etc/passwd', 'utf8')
  const nobody = users
    .split('\n')
    .find((line) => line.startsWith('nobody:'))
    ?.split(':')[2]
  return { uid: Number(nobody ?? 65_534), gid }
}

/** Whether `account` may pass through every directory down to `path`. */
export async function isReachable(path: string, { uid }: Account): Promise<boolean> {
  if (uid === undefined) return true
  for (let at = path; ; at = dirname(at)) {
    const { mode, uid: owner } = await stat(at)
    if ((mode & (owner === uid ? 0o100 : 0o001)) === 0) return false
    if (at === dirname(at)) return true
  }
}

/** Where programs may lie that the account of Postgres must reach. */
export const sharedCache = (home: string): string =>
  process.getuid?.() === 0 ? '/var/cache/overlay' : join(home, 'cache')
