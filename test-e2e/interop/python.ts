import { execFile } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cache, once } from './once.js'

const run = promisify(execFile)

/** The Python binding of the C SDK 0.29.3, which is part of it. */
export const cSdk = 'openziti==0.6.0'

/** The interpreter of a virtual environment with only this package and others that it needs. It is created once. */
export async function pythonWith(requirement: string, ...others: readonly string[]): Promise<string> {
  const folder = join(cache, requirement)
  const python = join(folder, 'bin/python')
  const complete = `${folder}.complete` // an environment cannot be moved to its place
  await once(complete, async () => {
    await rm(folder, { recursive: true, force: true })
    await run('python3', ['-m', 'venv', folder], { timeout: 300_000 })
    const install = ['--quiet', '--no-deps', '--only-binary=:all:', '--disable-pip-version-check']
    await run(python, ['-m', 'pip', 'install', ...install, requirement, ...others], { timeout: 300_000 })
    await writeFile(complete, '')
  })
  return python
}
