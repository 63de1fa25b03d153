import pg from 'pg'

/** One connection for one piece of work: what the owner does, before any pool exists. */
export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5000 })
  client.on('error', () => undefined) // a connection that breaks fails its query too
  try {
    await client.connect()
    return await work(client)
  } finally {
    await client.end()
  }
}

/** SQLSTATE, or the code of the network's error. */
export const codeOf = (err: unknown): string => String((err as { code?: unknown }).code ?? '')
