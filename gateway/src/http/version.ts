import { statSync } from 'node:fs'
import { build } from '@overlay/process'

/** The version of the original whose API this controller speaks. wire: clients compare versions in this form. */
export const VERSION = 'v1.1.13'

/** Value of the header `server`. */
export const SERVER_NAME = `ziti-controller/${VERSION}`

/** Of both APIs, in the served documents. */
export const API_VERSION = '0.26.30'

/** Members of the answer to `/version` that describe this program. */
export interface ProgramInfo {
  readonly revision: string
  readonly buildDate: string
  readonly runtimeVersion: string
}

/**
 * Describes the running program.
 * wire: clients may refuse members that they do not know, so `runtimeVersion`, a free text, contains our own version.
 * @param file of the program; its time is that of the build
 */
export const describeProgram = (file: string): ProgramInfo => ({
  revision: build.revision,
  buildDate: statSync(file).mtime.toISOString().slice(0, 19).replace('T', ' '),
  runtimeVersion: `overlay/${build.version} node/${process.versions.node}`,
})
