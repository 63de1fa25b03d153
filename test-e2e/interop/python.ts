import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const cache = join(import.meta.dirname, '../node_modules/.cache')

/** The interpreter of a virtual environment with only this package, which is created once. */
export async function pythonWith(requirement: string): Promise<string> {
  const folder = join(cache, requirement)
  const python = join(folder, 'bin/python')
  const complete = join(folder, 'complete')
  if (existsSync(complete) && existsSync(python)) return python
  await rm(folder, { recursive: true, force: true })
  await run('python3', ['-m', 'venv', folder], { timeout: 60_000 })
  const install = ['--quiet', '--no-deps', '--only-binary=:all:', '--disable-pip-version-check', requirement]
  await run(python, ['-m', 'pip', 'install', ...install], { timeout: 120_000 })
  await writeFile(complete, '')
  return python
}
