import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readFile, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cache, once } from './once.js'

const run = promisify(execFile)
const source = join(import.meta.dirname, 'go-sdk')

export type GoVersion = '0.23.42' | '1.2.3' | '1.7.0'

/** Versions of the Go SDK, the oldest first. */
export const goVersions: readonly GoVersion[] = ['0.23.42', '1.2.3', '1.7.0']

const modOf = (version: GoVersion): string => (version === '1.7.0' ? 'go.mod' : `go-${version}.mod`)

/** The program of `go-sdk` with this version of the SDK. It is built once. */
export async function goProgram(version: GoVersion): Promise<string> {
  const mod = modOf(version)
  const hash = createHash('sha256')
  for (const file of ['enroll.go', 'http.go', 'login.go', 'main.go', mod, mod.replace(/mod$/, 'sum')])
    hash.update(await readFile(join(source, file)))
  const program = join(cache, `go-sdk-${version}-${hash.digest('hex').slice(0, 16)}`)
  await once(program, async () => {
    const output = `${program}.new`
    await run(
      await goCommand(),
      ['build', '-ldflags=-s -w', '-buildvcs=false', `-modfile=${mod}`, '-o', output, '.'],
      {
        cwd: source,
        env: { ...process.env, CGO_ENABLED: '0', GOFLAGS: '-mod=readonly', GONOSUMDB: '*' }, // go.sum has all sums
        timeout: 600_000,
      },
    )
    await rename(output, program)
  })
  return program
}

/** The go command, wherever the distribution has it. */
export async function goCommand(): Promise<string> {
  for (const command of ['go', '/usr/local/go/bin/go', '/usr/lib/go/bin/go']) {
    if (await run(command, ['version']).catch(() => undefined)) return command
  }
  throw new Error('there is no go command')
}
