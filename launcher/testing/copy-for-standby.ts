import { appendFile, copyFile, mkdir, readdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { withClient } from '@overlay/store/postgres/migrate'
import { type Account, chownAll, chownTo } from '../src/system/account.js'
import type { Upstream } from './test-postgres.js'

/** What belongs to the running server. The standby receives the log from its primary. */
const left = /^(postmaster\.(pid|opts)|(pg_wal|pg_replslot|pg_notify|pg_stat_tmp|pg_subtrans)\/.*)$/

/**
 * Copies the files of a running server, so that a server that starts with the copy is its standby. The embedded package
 * has no pg_basebackup.
 */
export async function copyForStandby({ url, port }: Upstream, data: string, account: Account): Promise<void> {
  await mkdir(data, { recursive: true, mode: 0o700 })
  const { username, password } = new URL(url)
  await withClient(url, async (client) => {
    await client.query("alter system set wal_keep_size = '1GB'")
    await client.query('select pg_reload_conf()')
    const { rows } = await client.query<{ directory: string }>(
      "select current_setting('data_directory') as directory, pg_backup_start('standby', fast => true)",
    )
    await copyFiles(rows[0]?.directory ?? '', data)
    const stopped = await client.query<{ labelfile: string }>(
      'select labelfile from pg_backup_stop(wait_for_archive => false)',
    )
    await writeFile(join(data, 'backup_label'), stopped.rows[0]?.labelfile ?? '', { mode: 0o600 })
  })
  await writeFile(join(data, 'standby.signal'), '', { mode: 0o600 })
  const upstream = `host=127.0.0.1 port=${port} user=${username} password=${password}`
  // the last line of a setting counts
  await appendFile(
    join(data, 'postgresql.auto.conf'),
    `primary_conninfo = '${upstream}'\nwal_retrieve_retry_interval = '200ms'\nsynchronous_standby_names = ''\n`,
  )
  await chownTo(dirname(data), account)
  await chownAll(data, account)
}

/** Files that vanish meanwhile are in the log. */
async function copyFiles(from: string, to: string): Promise<void> {
  for (const entry of await readdir(from, { recursive: true, withFileTypes: true })) {
    const source = join(entry.parentPath, entry.name)
    const path = source.slice(from.length + 1)
    if (left.test(path)) continue
    if (entry.isDirectory()) await mkdir(join(to, path), { mode: 0o700 })
    else
      await copyFile(source, join(to, path)).catch((err: NodeJS.ErrnoException) => {
        if (err.code !== 'ENOENT') throw err
      })
  }
}
