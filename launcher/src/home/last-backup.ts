import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ignoreMissing } from '../system/files.js'
import { writeInHome } from './home-files.js'

/** A snapshot or a backup that is complete. The time is in ISO 8601. */
export interface Saved {
  readonly path: string
  readonly at: string
}

const NAME = 'last-backup.json'

export async function lastBackup(home: string): Promise<Saved | undefined> {
  const text = await readFile(join(home, NAME), 'utf8').catch(ignoreMissing)
  return text === undefined ? undefined : JSON.parse(text)
}

export const noteBackup = (home: string, backup: Saved): Promise<void> =>
  writeInHome(home, NAME, `${JSON.stringify(backup)}\n`)
