import { createHash } from 'node:crypto'
import { metrics } from '@overlay/process'
import { runPeriodically } from '@overlay/process/async'
import { ownContext } from '@overlay/rpc'
import { activateKey, KeyRefused, listKeys } from '../keys/operations.js'
import { PROVIDED_KEY_CHECK_MS } from '../limits.js'
import { type ImportDeps, importKeys, nextIdOf } from './import-keys.js'
import type { ProvidedSource } from './key-sources.js'
import { type KeyFiles, ProvidedKeyError, readKeyFiles } from './read-key-files.js'

/** Reads the files of a provided key, and takes the next step. Never fails. */
export type KeyWatch = (deps: ImportDeps) => Promise<void>

/**
 * Reads the keys of the settings again now and every minute, in every replica. Another certificate replaces that of the
 * same key. Another key is published, and activated after a minute.
 */
export function startProvidedKeys(
  deps: Omit<ImportDeps, 'context'>,
  sources: readonly ProvidedSource[],
): AsyncDisposable {
  const watches = sources.map(watchKey)
  const check = async (signal: AbortSignal): Promise<void> => {
    for (const watch of watches) await watch({ ...deps, context: ownContext(signal) })
  }
  const stop = new AbortController()
  const first = check(stop.signal)
  const timer = runPeriodically(PROVIDED_KEY_CHECK_MS, check)
  return {
    async [Symbol.asyncDispose]() {
      stop.abort()
      await Promise.all([first, timer[Symbol.asyncDispose]()])
    },
  }
}

export function watchKey(source: ProvidedSource): KeyWatch {
  const { role } = source
  let imported: string | undefined // digest of the files
  let pending: string | undefined // id of the key that is to become active
  let reported: string | undefined // the last problem
  return async (deps) => {
    const { log, hosts, now = () => new Date() } = deps
    try {
      const files = await readKeyFiles(source)
      const digest = digestOf(files)
      if (digest !== imported) {
        const { checkProvidedKey } = await import('./read-provided-key.js')
        const key = checkProvidedKey(role, files, { hosts, now: now() })
        await importKeys(deps, [{ source, key }])
        pending = await nextIdOf(deps, role, key)
        imported = digest
      }
      if (pending !== undefined && (await isActivated(deps, role, pending))) pending = undefined
      reported = undefined
      metrics.providedKeyRefused.set({ role }, 0)
    } catch (err) {
      metrics.providedKeyRefused.set({ role }, 1)
      const isExpected = err instanceof ProvidedKeyError
      const problem = isExpected ? err.message : String(err)
      if (problem === reported) return
      reported = problem
      if (isExpected) log.error({ role, detail: problem }, 'provided key cannot be used, the last one stays')
      else log.error({ role, err }, 'provided key not checked')
    }
  }
}

/** Whether there is nothing left to do for a key that is to become active. */
async function isActivated(deps: ImportDeps, role: ProvidedSource['role'], id: string): Promise<boolean> {
  const keys = await listKeys(deps)
  if (!keys.some((key) => key.id === id && key.state === 'next')) return true // by another replica, or withdrawn
  try {
    const { unverifiableTokens } = await activateKey(deps, role)
    deps.log.info({ role, keyId: id, unverifiableTokens }, 'provided key activated')
    return true
  } catch (err) {
    if (err instanceof KeyRefused && err.reason === 'not-published') return false
    throw err
  }
}

function digestOf({ key, certificates, authorities, passphrase }: KeyFiles): string {
  const hash = createHash('sha256')
  for (const part of [key.bytes, certificates?.bytes, authorities?.bytes, Buffer.from(passphrase ?? '')])
    hash.update(`${part?.length ?? -1}:`).update(part ?? '')
  return hash.digest('hex')
}
