import { access, constants, rm, writeFile } from 'node:fs/promises'
import { delimiter, join, resolve } from 'node:path'
import { busLimits, busUrl, busUser } from '../src/servers/broker.js'
import { type Account, chownTo, isReachable } from '../src/system/account.js'
import { type RunningProcess, startProgram } from '../src/system/start-program.js'

export interface NatsServerOptions {
  readonly path: string
  readonly port: number
  readonly password: string
  /** The file for its configuration. It has the password, which must not be on a command line. */
  readonly configFile: string
  readonly account?: Account
  /** Directory of the server's certificate and of the authorities of clients. Absent: no TLS; for tests. */
  readonly tls?: string
}

export interface NatsServer extends RunningProcess {
  readonly url: string
  /** New connections use the present files of the directory. */
  reload(): void
}

/** The path of nats-server, if PATH has one that the account can reach. */
export async function findNatsServer(account: Account = {}): Promise<string | undefined> {
  for (const directory of (process.env.PATH ?? '').split(delimiter).filter(Boolean)) {
    const path = resolve(directory, 'nats-server')
    const isUsable = await access(path, constants.X_OK).then(
      () => isReachable(path, account),
      () => false,
    )
    if (isUsable) return path
  }
  return undefined
}

/** Starts nats-server on the loopback interface. It ends when this process ends for any reason. */
export async function startNatsServer({
  path,
  port,
  password,
  configFile,
  account = {},
  tls,
}: NatsServerOptions): Promise<NatsServer> {
  const { connections, loginMs, subscriptions, payloadBytes, pendingBytes } = busLimits
  const config = {
    host: '127.0.0.1',
    port,
    // a list, because a reload disconnects the clients of a single user
    authorization: { users: [{ user: busUser, password }], timeout: loginMs / 1000 },
    max_connections: connections,
    max_subscriptions: subscriptions,
    max_payload: payloadBytes,
    max_pending: pendingBytes,
    ...(tls !== undefined && {
      tls: {
        cert_file: join(tls, 'tls.crt'),
        key_file: join(tls, 'tls.key'),
        ca_file: join(tls, 'ca.crt'),
        verify: true,
        timeout: loginMs / 1000,
      },
    }),
  }
  await rm(configFile, { force: true }) // the mode is for new files only
  await writeFile(configFile, JSON.stringify(config), { mode: 0o600 })
  await chownTo(configFile, account)
  const args = ['--config', configFile]
  const server = await startProgram({ path, args, account, readyText: 'Server is ready' })
  let isRunning = true
  void server.ended.then(() => {
    isRunning = false // another process may get the id
  })
  const reload = (): void => {
    if (isRunning) process.kill(server.pid, 'SIGHUP')
  }
  return { ...server, url: busUrl(port, password), reload }
}
