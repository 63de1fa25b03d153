import pg from 'pg'
import type { Sql } from 'sql-template-tag'

/** A lock that one replica holds at a time. What is written on its connection is written by the holder, or not at all. */
export interface Exclusive extends AsyncDisposable {
  /** True when this replica holds the lock, now or already. Never throws: a database that is away gives no lock. */
  attempt(): Promise<boolean>
  isHeld(): boolean
  /** Fails when the lock is lost. */
  query<Row extends pg.QueryResultRow>(query: Sql): Promise<pg.QueryResult<Row>>
}

export function openExclusive(url: string, schema: string, name: string): Exclusive {
  let client: pg.Client | undefined
  let held = false

  const lose = (): void => {
    const lost = client
    client = undefined
    held = false
    lost?.end().catch(() => undefined) // broken already
  }
  const connect = async (): Promise<pg.Client> => {
    const fresh = new pg.Client({
      connectionString: url,
      application_name: `${schema} ${name}`,
      // a lost row is as if the change had not been noticed: its replacement is told to everybody
      options: `-c search_path=${schema} -c synchronous_commit=off`,
      connectionTimeoutMillis: 5000,
      query_timeout: 30_000,
      keepAlive: true,
    })
    fresh.on('error', () => {
      if (client === fresh) lose()
    })
    await fresh.connect()
    return fresh
  }

  return {
    isHeld: () => held,
    async attempt() {
      if (held) return true
      try {
        client ??= await connect()
        const { rows } = await client.query<{ held: boolean }>(
          'select pg_try_advisory_lock(hashtextextended($1, 0)) as held',
          [`${schema} ${name}`],
        )
        held = rows[0]?.held ?? false
      } catch {
        lose()
      }
      return held
    },
    async query(query) {
      if (!client || !held) throw new Error('the lock is not held')
      try {
        return await client.query(query.text, query.values)
      } catch (err) {
        lose()
        throw err
      }
    },
    [Symbol.asyncDispose]: async () => {
      const last = client
      client = undefined
      held = false
      await last?.end()
    },
  }
}
