import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const root = join(import.meta.dirname, '..')

/** Starts the built product, as `npm start` does. */
export function launch(home: string, env: NodeJS.ProcessEnv, args: readonly string[] = []): ChildProcess {
  return spawn(process.execPath, ['launcher/dist/main.js', ...args], {
    cwd: root,
    env: { ...process.env, OVERLAY_HOME: home, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

/** The output up to a line. */
export async function untilOutput({ stdout, stderr }: ChildProcess, line: RegExp): Promise<string> {
  const output: string[] = []
  return new Promise((resolve, reject) => {
    for (const input of [stdout, stderr]) {
      if (!input) continue
      const lines = createInterface({ input })
      lines.on('line', (text) => {
        output.push(text)
        if (line.test(text)) resolve(output.join('\n'))
      })
      lines.once('close', () => reject(new Error(`ended without ${line}: ${output.join('\n')}`)))
    }
  })
}
