import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')

/** Writes the files of the image of this project, or of another checkout of it. */
export async function buildImage(directory: string, checkout = root): Promise<void> {
  await mkdir(join(directory, '..'), { recursive: true })
  await run('sh', ['scripts/image.sh', directory], { cwd: checkout, maxBuffer: 1 << 24 })
}
