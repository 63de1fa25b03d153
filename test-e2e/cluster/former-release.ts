import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

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
  await git('archive', `--output=${directory}.tar`, commit)
  await run('tar', ['-xf', `${directory}.tar`, '-C', directory])
}
