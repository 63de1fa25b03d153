import { fingerprintOfPem } from '@overlay/x509'
import type { Logger } from 'pino'
import { tokenKeyOf } from '../keys/new-keys.js'
import { type KeyDeps, listKeys, prepareProvidedKeys } from '../keys/operations.js'
import type { ProvidedSource } from './key-sources.js'
import type { CheckedKey } from './read-provided-key.js'

export interface ImportDeps extends KeyDeps {
  /** Hosts that the certificate of the servers must name. */
  readonly hosts: readonly string[]
  readonly log: Logger
}

/** A key of the settings that can be used. */
export interface CheckedSource {
  readonly source: ProvidedSource
  readonly key: CheckedKey
}

/** Reads the keys of the settings and adds them to the network. Throws before anything has changed. */
export async function importProvidedKeys(
  deps: ImportDeps,
  sources: readonly ProvidedSource[],
): Promise<void> {
  if (sources.length === 0) return
  const { readProvidedKey } = await import('./read-provided-key.js') // takes 4 MiB, and is rarely needed
  const { hosts, now = () => new Date() } = deps
  const read = async (source: ProvidedSource): Promise<CheckedSource> => ({
    source,
    key: await readProvidedKey(source.role, source, { hosts, now: now() }),
  })
  await importKeys(deps, await Promise.all(sources.map(read)))
}

/**
 * Adds keys to the network: as active keys where there are none yet, otherwise as next ones. A newer certificate of
 * a key that is there replaces the former one. A key that has been retired stays so, with a warning.
 */
export async function importKeys(deps: ImportDeps, checked: readonly CheckedSource[]): Promise<void> {
  const { log } = deps
  for (const { source, key } of checked)
    for (const detail of key.warnings)
      log.warn({ role: source.role, detail }, 'provided key accepted with a warning')
  const provided = checked.map(({ source, key }) => ({ role: source.role, material: key }))
  await prepareProvidedKeys(deps, provided, (at, { message }) => {
    const source = checked[at]?.source
    log.warn(
      { role: source?.role, detail: `${source?.names.path} ${source?.path}: ${message}` },
      'provided key not used',
    )
  })
}

/** The id of this very key while it is the next one. */
export async function nextIdOf(
  deps: ImportDeps,
  role: ProvidedSource['role'],
  { privateKey, certificate }: CheckedKey,
): Promise<string | undefined> {
  const fingerprint = certificate === undefined ? tokenKeyOf(privateKey).id : fingerprintOfPem(certificate)
  const keys = await listKeys(deps)
  return keys.find((key) => key.role === role && key.state === 'next' && key.fingerprint === fingerprint)?.id
}
