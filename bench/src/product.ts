import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { readLauncherSettings } from '@overlay/launcher/product'
import { freePort, withDatabase } from '@overlay/launcher/testing'
import type { RunningController } from './options.js'

export interface Product extends RunningController, AsyncDisposable {
  /** Runs work with the URL of the owner of its database. */
  withDatabase(work: (ownerUrl: string) => Promise<void>): Promise<void>
}

const root = join(import.meta.dirname, '../..')
const parts = ['gateway', 'identity', 'pki', 'policy', 'sessions']
const START_MS = 300_000

/** The parameters of the original, for comparable logins: argon2id, one pass over 3 MiB. */
const hashing = { OVERLAY_PASSWORD_MEMORY_KIB: '3072', OVERLAY_PASSWORD_PASSES: '1' }

export interface ProductOptions {
  /** Another checkout, which is built first; this project if absent. */
  readonly directory?: string
  /** Processes of each part; 1 if absent. */
  readonly replicas?: number
}

/** Starts the product as a user would, in a home of its own. */
export async function startProduct({ directory, replicas = 1 }: ProductOptions = {}): Promise<Product> {
  const home = await mkdtemp(join(tmpdir(), 'overlay-bench-'))
  const address = `localhost:${await freePort()}`
  const ctrlAddress = `localhost:${await freePort()}`
  const env = {
    ...process.env,
    ...hashing,
    OVERLAY_HOME: home,
    OVERLAY_ADDRESS: address,
    OVERLAY_CTRL_ADDRESS: ctrlAddress,
  }
  const scale = replicas > 1 ? ['--scale', parts.map((part) => `${part}=${replicas}`).join()] : []
  // the script replaces itself by the launcher
  const [command, program] = directory
    ? ['sh', 'scripts/start.sh']
    : [process.execPath, 'launcher/dist/main.js']
  const child = spawn(command, [program, ...scale], {
    cwd: directory ?? root,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  const dispose = async (): Promise<void> => {
    child.kill('SIGTERM')
    await ended
    await rm(home, { recursive: true })
  }
  try {
    const late = pause(START_MS, 'is not ready in time', { ref: false })
    const failed = await Promise.race([untilReady(child.stdout), ended.then(() => 'does not start'), late])
    if (failed || child.pid === undefined) throw new Error(`the product ${failed}`)
    const password = (await readFile(join(home, 'admin-password'), 'utf8')).trim()
    return {
      url: `https://${address}`,
      username: 'admin',
      password,
      pids: [child.pid],
      ctrlAddress,
      withDatabase: (work) => withDatabase(readLauncherSettings(env), () => undefined, work),
      [Symbol.asyncDispose]: dispose,
    }
  } catch (err) {
    await dispose()
    throw err
  }
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
