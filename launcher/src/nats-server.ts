import { access, constants, rm, writeFile } from 'node:fs/promises'
import { delimiter, resolve } from 'node:path'
import { type Account, give, isReachable } from './account.js'
import { busLimits, busUrl, busUser } from './broker.js'
import { type Running, startWithParent } from './die-with-parent.js'

export interface NatsServerOptions {
  readonly path: string
  readonly port: number
  readonly password: string
  /** Where its configuration is written: it holds the password, and a command line can be seen by everybody. */
  readonly configFile: string
  readonly account?: Account
}

/** Path of the real server, when there is one on PATH that the account can reach. */
export async function findNatsServer(account: Account = {}): Promise<string | undefined> {
  for (const directory of (process.env.PATH ?? '').split(delimiter).filter(Boolean)) {
    const path = resolve(directory, 'nats-server')
    const found = await access(path, constants.X_OK).then(
      () => isReachable(path, account),
      () => false,
    )
    if (found) return path
  }
  return undefined
}

/** Starts the real server on the loopback interface; it ends with this process, however that ends. */
export async function startNatsServer({
  path,
  port,
  password,
  configFile,
  account = {},
}: NatsServerOptions): Promise<Running & { url: string }> {
  const { connections, loginMs, subscriptions, payloadBytes, pendingBytes } = busLimits
  const config = {
    host: '127.0.0.1',
    port,
    authorization: { user: busUser, password, timeout: loginMs / 1000 },
    max_connections: connections,
    max_subscriptions: subscriptions,
    max_payload: payloadBytes,
    max_pending: pendingBytes,
  }
  await rm(configFile, { force: true }) // the mode is for new files only
  await writeFile(configFile, JSON.stringify(config), { mode: 0o600 })
  await give(configFile, account)
  const args = ['--config', configFile]
  const server = await startWithParent({ path, args, account, readyWords: 'Server is ready' })
  return { ...server, url: busUrl(port, password) }
}
