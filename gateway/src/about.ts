import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'

/** The version of the original whose API this controller speaks. wire: clients compare versions in this form. */
export const VERSION = 'v1.1.13'

/** Value of the header `server`. */
export const SERVER_NAME = `ziti-controller/${VERSION}`

/** Of both APIs, in the served documents. */
export const API_VERSION = '0.26.30'

export interface Build {
  readonly revision: string
  readonly buildDate: string
}

/** Describes the running program by its own file: the build needs no arguments. */
export function buildOf(file: string): Build {
  const revision = createHash('sha256').update(readFileSync(file)).digest('hex').slice(0, 12)
  const buildDate = statSync(file).mtime.toISOString().slice(0, 19).replace('T', ' ')
  return { revision, buildDate }
}
