import { chown, readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Who runs Postgres: ourselves, or nobody when we are root, because Postgres refuses to be root. */
export interface Account {
  readonly uid?: number
  readonly gid?: number
}

/** @param data directory of a database that may be there already: then its owner goes on with it */
export async function accountFor(data: string): Promise<Account> {
  if (process.getuid?.() !== 0) return {}
  const owner = await stat(data).catch(() => undefined)
  if (owner && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid }
  const users = await readFile('/etc/passwd', 'utf8')
  const [, , uid, gid] =
    users
      .split('\n')
      .find((line) => line.startsWith('nobody:'))
      ?.split(':') ?? []
  return { uid: Number(uid ?? 65534), gid: Number(gid ?? 65534) }
}

export async function give(path: string, { uid, gid }: Account): Promise<void> {
  if (uid !== undefined && gid !== undefined) await chown(path, uid, gid)
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

/** Where programs may lie that `postgresAccount` must reach. */
export const sharedCache = (home: string): string =>
  process.getuid?.() === 0 ? '/var/cache/overlay' : join(home, 'cache')
