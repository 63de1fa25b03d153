import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import type { Plugin } from 'vitest/config'

const root = join(import.meta.dirname, '..')

/** Runs the tests of these folders as they and what they import are compiled for programs. */
export function compiled(folders: readonly string[]): Plugin {
  let programs: Promise<ReadonlyMap<string, string>> | undefined
  return {
    name: 'compiled',
    enforce: 'pre',
    async load(id) {
      if (!id.endsWith('.test.ts')) return undefined
      programs ??= compile(folders)
      return (await programs).get(relative(root, id))
    },
  }
}

/** The text of each program by the name of its source. */
async function compile(folders: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const tests = folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.test.ts'))
      .map((file) => join(folder, file)),
  )
  const directory = mkdtempSync(join(tmpdir(), 'compiled-tests-'))
  try {
    // vite misreads a member named `export` at the beginning of a line
    const options = ['--outbase=.', '--external:vitest', '--line-limit=0']
    execFileSync('sh', [join(root, 'scripts/bundle.sh'), directory, ...options, ...tests], {
      stdio: 'inherit',
    })
    const programOf = (test: string) => readFileSync(join(directory, test.replace(/ts$/, 'js')), 'utf8')
    return new Map(tests.map((test) => [test, programOf(test)]))
  } finally {
    rmSync(directory, { recursive: true })
  }
}
