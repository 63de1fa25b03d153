import { execFileSync, spawn } from 'node:child_process'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')

/** Builds the bundles, which these tests run, and prepares foreign programs while other tests run. */
export function setup(): () => void {
  execFileSync('sh', ['-c', '. scripts/prepare.sh; prepare_build'], { cwd: root, stdio: 'inherit' })
  if (process.env.CI !== 'true') return () => undefined // a run of some tests needs few of them
  const node = [process.execPath, '--conditions=source', '--import', 'tsx', 'test-e2e/interop/prepare.ts']
  const preparing = spawn('nice', ['-n', '19', ...node], { cwd: root, stdio: 'ignore', detached: true })
  preparing.on('error', () => undefined) // without `nice`, tests prepare what they need
  let isRunning = preparing.pid !== undefined
  preparing.on('exit', () => {
    isRunning = false
  })
  return () => {
    if (isRunning) process.kill(-Number(preparing.pid)) // and what it has started
  }
}
