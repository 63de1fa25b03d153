import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cache, once } from './once.js'

const run = promisify(execFile)
const source = join(import.meta.dirname, 'jvm-sdk')

/** The command of the program of `jvm-sdk`. It is built once. */
export async function jvmProgram(): Promise<[string, ...string[]]> {
  const hash = createHash('sha256')
  for (const file of ['Sdk.java', 'pom.xml']) hash.update(await readFile(join(source, file)))
  const folder = join(cache, `jvm-sdk-${hash.digest('hex').slice(0, 16)}`)
  await once(folder, () => build(folder))
  // The SDK reads a member of sockets that Java has closed to others.
  return ['java', '--add-opens=java.base/java.net=ALL-UNNAMED', '-cp', classPathOf(folder), 'Sdk']
}

const classPathOf = (folder: string): string => `${folder}:${folder}/lib/*`

async function build(folder: string): Promise<void> {
  const unfinished = `${folder}.new`
  await rm(unfinished, { recursive: true, force: true })
  const copy = ['dependency:copy-dependencies', `-DoutputDirectory=${unfinished}/lib`]
  await run('mvn', ['--batch-mode', '--quiet', ...copy], { cwd: source, timeout: 300_000 })
  await run('javac', ['-d', unfinished, '-cp', classPathOf(unfinished), join(source, 'Sdk.java')])
  await rename(unfinished, folder)
}
