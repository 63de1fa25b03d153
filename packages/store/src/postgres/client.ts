import pg from 'pg'
import { connectionOf } from './connection.js'

/** Runs work on a connection of its own, before any pool exists. */
export async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  await using connection = await openClient(url)
  return await work(connection.client)
}

/** A connection outside of the pools, until it is disposed. */
export async function openClient(
  url: string,
  config: pg.ClientConfig = {},
): Promise<AsyncDisposable & { readonly client: pg.Client }> {
  const client = new pg.Client({ connectionTimeoutMillis: 5000, ...config, ...connectionOf(url) })
  client.on('error', () => undefined) // a broken connection fails its query too
  const close = (): Promise<void> => client.end()
  try {
    await client.connect()
  } catch (err) {
    close().catch(() => undefined) // not awaited: after a failed handshake of TLS, the driver may not report the end
    throw err
  }
  return { client, [Symbol.asyncDispose]: close }
}

/**
 * For a connection that keeps others waiting: the server ends it half a minute after its client's machine has lost power
 * or the network, and not after hours. Without effect on a Unix socket.
 */
export async function endWithMachine(client: pg.ClientBase): Promise<void> {
  await client.query(
    'set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 4',
  )
}

/** SQLSTATE, or the code of the network's error. */
export const codeOf = (err: unknown): string => String((err as { code?: unknown }).code ?? '')
