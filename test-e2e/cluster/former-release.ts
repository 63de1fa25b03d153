import { execFile } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { cache, once } from '../interop/once.js'
import { buildImage } from './image.js'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')

export const git = async (...args: string[]): Promise<string> =>
  (await run('git', ['-c', `safe.directory=${root}`, ...args], { cwd: root })).stdout.trim()

/** The commit of the last release before this commit; in a clone that does not reach back to one, the commit before it. */
export async function formerRelease(): Promise<string> {
  const release = await git('log', '-1', '--format=%H', '-E', '--grep=^release: [0-9.]+$', 'HEAD^')
  if (release !== '') return release
  const commit = await commitBefore()
  console.log(`no release is in the history of this clone: using the commit before this one, ${commit}`)
  return commit
}

export const commitBefore = (): Promise<string> => git('rev-parse', 'HEAD^')

/** Writes the files of a commit into a new directory. */
export async function checkOut(commit: string, directory: string): Promise<void> {
  await mkdir(directory)
  const archive = `${directory}.tar`
  await git('archive', `--output=${archive}`, commit)
  await run('tar', ['-xf', archive, '-C', directory])
  await rm(archive)
}

export interface FormerBuild {
  /** The files of the commit. */
  readonly checkout: string
  /** Those of its image. */
  readonly image: string
}

/** Builds a commit once. */
export async function buildCommit(commit: string): Promise<FormerBuild> {
  const directory = join(cache, `commit-${commit}`)
  const built = { checkout: join(directory, 'checkout'), image: join(directory, 'image') }
  await once(join(directory, 'complete'), async () => {
    await rm(built.checkout, { recursive: true, force: true })
    await rm(built.image, { recursive: true, force: true })
    await checkOut(commit, built.checkout)
    await buildImage(built.image, built.checkout)
    await rm(join(built.checkout, 'node_modules'), { recursive: true })
    await writeFile(join(directory, 'complete'), '')
  })
  return built
}
