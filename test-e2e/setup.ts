import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')
const node = [process.execPath, '--conditions=source', '--import', 'tsx'] as const

/** Builds the bundles, which these tests run, and starts programs that serve them. */
export async function setup(): Promise<() => Promise<void>> {
  if (process.env.OVERLAY_TEST_NETWORKS) return async () => undefined // another project has done it
  execFileSync('sh', ['-c', '. scripts/prepare.sh; prepare_build'], { cwd: root, stdio: 'inherit' })
  const stopLending = await lendNetworks()
  const stopPreparing = prepare()
  return async () => {
    stopPreparing()
    await stopLending()
  }
}

async function lendNetworks(): Promise<() => Promise<void>> {
  const directory = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  const socket = join(directory, 'networks.sock')
  process.env.OVERLAY_TEST_NETWORKS = socket
  const [command, ...args] = [...node, 'test-e2e/shared-networks.ts', socket]
  const lending = spawn(command, args, { cwd: root, stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(lending, 'exit')
  await Promise.race([once(lending.stdout, 'data'), ended])
  return async () => {
    lending.stdin.end()
    const [code] = await ended
    await rm(directory, { recursive: true })
    if (code === 0) return
    console.error('the networks that files share had problems')
    process.exitCode = 1 // what is thrown here would keep other teardowns from their work
  }
}

/** Prepares foreign programs while other tests run. */
function prepare(): () => void {
  if (process.env.CI !== 'true') return () => undefined // a run of some tests needs few of them
  const [command, ...args] = [...node, 'test-e2e/interop/prepare.ts']
  const preparing = spawn(command, args, { cwd: root, stdio: 'ignore', detached: true })
  let isRunning = true
  preparing.on('exit', () => {
    isRunning = false
  })
  return () => {
    if (isRunning) process.kill(-Number(preparing.pid)) // and what it has started
  }
}
