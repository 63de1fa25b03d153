import { createHash } from 'node:crypto'
import { readFileSync, statSync } from 'node:fs'

/** wire: clients compare versions in this form; it is the version of the original whose API this one speaks. */
export const VERSION = 'v1.1.13'

/** Value of the header `server`. */
export const SERVER_NAME = `ziti-controller/${VERSION}`

/** Of both APIs, in the served documents. */
export const API_VERSION = '0.26.30'

export interface Build {
  readonly revision: string
  readonly buildDate: string
}

/** What runs here, told by the program's own file: nothing has to be passed to the build. */
export function buildOf(file: string): Build {
  const revision = createHash('sha256').update(readFileSync(file)).digest('hex').slice(0, 12)
  const buildDate = statSync(file).mtime.toISOString().slice(0, 19).replace('T', ' ')
  return { revision, buildDate }
}
