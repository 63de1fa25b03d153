import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { readLauncherSettings } from '@overlay/launcher/product'
import { freePort, withDatabase } from '@overlay/launcher/testing'
import type { Layout, RunningController } from './options.js'

export interface Product extends RunningController, AsyncDisposable {
  /** Runs work with the URL of the owner of its database. */
  withDatabase(work: (ownerUrl: string) => Promise<void>): Promise<void>
  /** Of the health and the metrics of all processes. */
  readonly metricsUrl: string
  /** Restarts all processes with the same data and addresses. */
  restart(): Promise<void>
}

export const isProduct = (running: RunningController | Product): running is Product => 'restart' in running

/** Throws if it is a controller that was running already. */
export function productOf(running: RunningController | Product): Product {
  if (!isProduct(running)) throw new Error('only a product that is started here can be restarted')
  return running
}

const root = join(import.meta.dirname, '../..')
export const components = ['gateway', 'identity', 'pki', 'policy', 'sessions']
const START_MS = 300_000

/** The parameters of the original, for comparable logins: argon2id, one pass over 3 MiB. */
const hashing = { OVERLAY_PASSWORD_MEMORY_KIB: '3072', OVERLAY_PASSWORD_PASSES: '1' }

export interface ProductOptions {
  /** Another checkout, which is built first; this project if absent. */
  readonly directory?: string
  /** One process with all components if absent. */
  readonly layout?: Layout
}

/** Starts the product as a user would, in a home of its own. */
export async function startProduct({ directory, layout }: ProductOptions = {}): Promise<Product> {
  const home = await mkdtemp(join(tmpdir(), 'overlay-bench-'))
  const address = `localhost:${await freePort()}`
  const ctrlAddress = `localhost:${await freePort()}`
  const metricsAddress = `127.0.0.1:${await freePort()}`
  const env = {
    ...process.env,
    ...hashing,
    OVERLAY_HOME: home,
    OVERLAY_ADDRESS: address,
    OVERLAY_CTRL_ADDRESS: ctrlAddress,
    OVERLAY_METRICS_ADDRESS: metricsAddress,
  }
  const processes = layout ? processesOf(layout) : []
  let launcher = await launch(env, directory, processes)
  return {
    url: `https://${address}`,
    username: 'admin',
    password: (await readFile(join(home, 'admin-password'), 'utf8')).trim(),
    get pids() {
      return [launcher.pid]
    },
    ctrlAddress,
    metricsUrl: `http://${metricsAddress}`,
    withDatabase: (work) => withDatabase(readLauncherSettings(env), () => undefined, work),
    async restart() {
      await launcher.stop()
      launcher = await launch(env, directory, processes)
    },
    async [Symbol.asyncDispose]() {
      await launcher.stop()
      await rm(home, { recursive: true })
    },
  }
}

const processesOf = ({ count, isSeparate }: Layout): string[] =>
  isSeparate
    ? ['--scale', components.map((component) => `${component}=${count}`).join()]
    : ['--replicas', String(count)]

interface Launcher {
  readonly pid: number
  stop(): Promise<void>
}

/** Resolves when the product is ready. */
async function launch(
  env: NodeJS.ProcessEnv,
  directory: string | undefined,
  processes: readonly string[],
): Promise<Launcher> {
  // the script replaces itself by the launcher
  const [command, program] = directory
    ? ['sh', 'scripts/start.sh']
    : [process.execPath, 'launcher/dist/main.js']
  const child = spawn(command, [program, ...processes], {
    cwd: directory ?? root,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const end = (): void => void child.kill('SIGTERM')
  process.on('exit', end) // the bench was ended by a signal
  const ended = once(child, 'exit').finally(() => process.off('exit', end))
  const stop = async (): Promise<void> => {
    end()
    await ended
  }
  const late = pause(START_MS, 'is not ready in time', { ref: false })
  const failed = await Promise.race([untilReady(child.stdout), ended.then(() => 'does not start'), late])
  if (!failed && child.pid !== undefined) return { pid: child.pid, stop }
  await stop()
  throw new Error(`the product ${failed}`)
}

async function untilReady(output: NodeJS.ReadableStream): Promise<undefined> {
  let text = ''
  await new Promise<void>((resolve) => {
    output.on('data', (chunk) => {
      text += chunk
      if (text.includes('\nready at ')) resolve()
    })
  })
}
