import { readFile } from 'node:fs/promises'
import { withClient } from '@overlay/store/postgres/migrate'
import { expect, test } from 'vitest'
import { whileOnlyStart } from '../src/servers/schemas.js'
import { testDatabase } from '../testing/testing.js'

/** When the kernel of the server asks next whether the client is there, in seconds. */
async function keepaliveOf(clientPort: number): Promise<number> {
  const port = clientPort.toString(16).toUpperCase().padStart(4, '0')
  const lines = (await readFile('/proc/net/tcp', 'utf8')).split('\n').map((line) => line.trim().split(/\s+/))
  const found = lines.find(([, , remote = '']) => remote.endsWith(`:${port}`))
  const [kind, ticks = ''] = found?.[5]?.split(':') ?? []
  return kind === '02' ? Number.parseInt(ticks, 16) / 100 : Number.POSITIVE_INFINITY
}

test.runIf(process.platform === 'linux')(
  'the server notices soon when the machine of a start that keeps others waiting is gone',
  async () => {
    await using database = await testDatabase()
    const warnings: string[] = []
    await whileOnlyStart(
      database.ownerUrl,
      (line) => warnings.push(line),
      () =>
        withClient(database.ownerUrl, async (client) => {
          const { rows } = await client.query<{ client_port: number }>(
            `select client_port from pg_locks join pg_stat_activity using (pid)
              where locktype = 'advisory' and granted and datname = current_database()`,
          )
          expect(rows).toHaveLength(1)
          const seconds = () => keepaliveOf(rows[0]?.client_port ?? 0)
          await expect.poll(seconds, { timeout: 30_000 }).toBeLessThanOrEqual(10) // by default 7200
        }),
    )
    expect(warnings).toEqual([])
  },
)
