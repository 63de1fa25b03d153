import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { isAlive } from '../is-alive.js'

/** What is made once. It stays from run to run, and serves all folders with this project. */
export const cache = process.env.OVERLAY_TEST_CACHE ?? join(homedir(), '.cache/overlay-tests')

const POLL_MS = 200

/** Makes a file or a folder unless it exists. Of several processes, one makes it and the others wait. */
export async function once(path: string, make: () => Promise<void>): Promise<void> {
  const lock = `${path}.lock`
  await mkdir(dirname(path), { recursive: true })
  while (!existsSync(path)) {
    if (!(await lockedHere(lock))) {
      await pause(POLL_MS)
      continue
    }
    try {
      if (!existsSync(path)) await make()
    } finally {
      await rm(lock)
    }
  }
}

/** Creates the file, with the process in it, unless a process that is alive has done so. */
async function lockedHere(lock: string): Promise<boolean> {
  const own = `${lock}.${randomUUID()}`
  await writeFile(own, `${process.pid}`)
  try {
    await link(own, lock) // unlike a file that is opened, it has its content from the start
    return true
  } catch (err) {
    if ((err as NodeJS.ErrnoException).code !== 'EEXIST') throw err
    const holder = Number(await readFile(lock, 'utf8').catch(() => ''))
    if (holder !== 0 && !isAlive(holder)) await rm(lock, { force: true })
    return false
  } finally {
    await rm(own, { force: true })
  }
}
