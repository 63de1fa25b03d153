import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The directory of the project. Sources and bundles are at different depths below it. */
export const projectRoot = projectRootAbove(import.meta.dirname)

function projectRootAbove(directory: string): string {
  if (existsSync(join(directory, 'pnpm-workspace.yaml'))) return directory
  const parent = dirname(directory)
  if (parent === directory) throw new Error(`${import.meta.dirname} is not in a directory of the project`)
  return projectRootAbove(parent)
}
