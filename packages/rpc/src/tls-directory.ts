import { watch } from 'node:fs'
import type { Logger } from 'pino'
import { CERTIFICATE_POLL_MS, CERTIFICATE_SETTLE_MS } from './limits.js'
import { readTlsMaterial, type TlsMaterial } from './tls-material.js'

/** A directory with a certificate, its key and authorities, which may change at any time. */
export interface TlsDirectory extends Disposable {
  /** The last valid set. */
  current(): TlsMaterial
  /** Returns a function that removes the listener. */
  onChange(listener: () => void): () => void
}

export interface TlsDirectoryOptions {
  /** Throws for a set that is valid but not for this process. */
  readonly check?: (material: TlsMaterial, directory: string) => void
  /** Called with the expiry of each valid set. */
  readonly onLoaded?: (expires: Date) => void
  /** Called for each unusable set. The last valid one stays in use. */
  readonly onRefused?: () => void
  readonly pollMs?: number
}

/** Fails if the directory has no valid set. Later sets replace the last valid one as a whole, or not at all. */
export async function openTlsDirectory(
  directory: string,
  log: Logger,
  { check, onLoaded, onRefused, pollMs = CERTIFICATE_POLL_MS }: TlsDirectoryOptions = {},
): Promise<TlsDirectory> {
  const listeners = new Set<() => void>()
  const read = async (): Promise<TlsMaterial> => {
    const material = await readTlsMaterial(directory)
    check?.(material, directory)
    return material
  }
  const expiryOf = ({ leaf }: TlsMaterial): Date => new Date(leaf.validTo)
  let current = await read()
  onLoaded?.(expiryOf(current))

  let problem: string | undefined // that was logged
  async function reload(): Promise<void> {
    try {
      const next = await read()
      problem = undefined
      if (isSame(next, current)) return
      current = next
      onLoaded?.(expiryOf(current))
      log.info({ directory, expires: expiryOf(current) }, 'certificate loaded')
      for (const listener of listeners) listener()
    } catch (err) {
      const { message } = err as Error
      if (message === problem) return
      problem = message
      onRefused?.()
      log.error(
        { directory, problem, expires: expiryOf(current) },
        'new certificate refused; the last valid one stays',
      )
    }
  }
  const stopWatching = watchDirectory(directory, log, pollMs, reload)
  return {
    current: () => current,
    onChange(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    [Symbol.dispose]: stopWatching,
  }
}

const isSame = (a: TlsMaterial, b: TlsMaterial): boolean =>
  a.certificates === b.certificates && a.key === b.key && a.authorities === b.authorities

/** Also polls: a directory that is replaced, and some file systems, report no changes. */
function watchDirectory(
  directory: string,
  log: Logger,
  pollMs: number,
  reload: () => Promise<void>,
): () => void {
  let settling: NodeJS.Timeout | undefined
  let running = Promise.resolve()
  const reloadInTurn = (): void => {
    running = running.then(reload)
  }
  const changed = (): void => {
    clearTimeout(settling)
    settling = setTimeout(reloadInTurn, CERTIFICATE_SETTLE_MS).unref()
  }
  const watcher = watch(directory, { persistent: false }, changed)
  watcher.on('error', (err) => log.warn({ err, directory }, 'directory is polled only'))
  const poll = setInterval(reloadInTurn, pollMs).unref()
  return () => {
    watcher.close()
    clearTimeout(settling)
    clearInterval(poll)
  }
}
