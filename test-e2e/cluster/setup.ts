import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestProject } from 'vitest/node'
import { buildImage } from './image.js'

/** Builds the image, for tests of other folders that run against the manifests. */
export async function setup({ provide }: TestProject): Promise<() => Promise<void>> {
  const work = await mkdtemp(join(tmpdir(), 'overlay-test-'))
  const image = join(work, 'image')
  await buildImage(image)
  provide('image', image)
  return () => rm(work, { recursive: true, force: true })
}
