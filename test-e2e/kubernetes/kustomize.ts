import { execFile } from 'node:child_process'
import { mkdtemp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { parseAllDocuments } from 'yaml'
import { goCommand } from '../interop/go.js'
import { cache, once } from '../interop/once.js'

const run = promisify(execFile)
const root = join(import.meta.dirname, '../..')
const VERSION = '5.8.1'

/** An object of Kubernetes, as far as all kinds have the same form. */
export interface KubernetesObject {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
  }
  // biome-ignore lint/suspicious/noExplicitAny: tests read deep into objects of all kinds, and fail where they differ
  readonly [member: string]: any
}

/** What kustomize makes of a folder below `deploy/kustomize` of a checkout: the text, and its objects. */
export async function render(
  folder: string,
  checkout = root,
): Promise<{ text: string; objects: readonly KubernetesObject[] }> {
  const directory = join(checkout, 'deploy/kustomize', folder)
  const { stdout: text } = await run(await kustomize(), ['build', directory], { maxBuffer: 1 << 24 })
  const objects = parseAllDocuments(text).map((document) => document.toJS() as KubernetesObject)
  return { text, objects }
}

/** The program, which is built once. */
export async function kustomize(): Promise<string> {
  const program = join(cache, `kustomize-${VERSION}`)
  await once(program, async () => {
    const work = await mkdtemp(`${program}-`)
    try {
      await run(await goCommand(), ['install', `sigs.k8s.io/kustomize/kustomize/v5@v${VERSION}`], {
        cwd: work,
        env: { ...process.env, GOBIN: work, CGO_ENABLED: '0' },
        timeout: 600_000,
      })
      await rename(join(work, 'kustomize'), program)
    } finally {
      await rm(work, { recursive: true, force: true })
    }
  })
  return program
}

/**
 * Runs what tests need beforehand, such as rendering. In CI it throws. Elsewhere a failure, as without a network, is
 * printed and returned, for tests to be skipped.
 */
export async function unavailableAfter(prepare: () => Promise<void>): Promise<unknown> {
  try {
    await prepare()
    return undefined
  } catch (err) {
    if (process.env.CI === 'true') throw err
    console.warn(`skipping tests, because manifests cannot be rendered or compared: ${err}`)
    return err
  }
}
