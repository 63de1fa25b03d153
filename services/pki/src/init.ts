import { noBus, openChangeLog } from '@overlay/platform/change-log'
import { openDatabase } from '@overlay/platform/postgres'
import { ownContext } from '@overlay/rpc'
import type { Logger } from 'pino'
import type { TokenKeyRules } from './domain/token-key-plan.js'
import { advertisedHosts, checkKeys, hostsAt } from './keys/check-keys.js'
import { readKeyring } from './keys/keyring.js'
import { importProvidedKeys } from './provided-keys/import-keys.js'
import { type ProvidedKeyPaths, providedSources } from './provided-keys/key-sources.js'

export interface InitOptions {
  readonly databaseUrl: string
  /** Encrypts private keys at rest. */
  readonly keySecret: string
  /** Advertised `host:port` of the APIs. */
  readonly address: string
  /** Where routers reach the control channel, as host:port. */
  readonly ctrlAddress: string
  /** Further names under which the servers are reached. */
  readonly hostNames?: readonly string[]
  /** Keys that the operator provides. Absent: none. */
  readonly provided?: { readonly paths: ProvidedKeyPaths; readonly tokenKeyRules: TokenKeyRules }
  readonly log: Logger
}

/** Adds the keys that the operator provides, and creates missing keys and certificates. Processes may call it at the same time. */
export async function initPki(options: InitOptions): Promise<{ readonly caPem: string }> {
  const { databaseUrl, keySecret, address, ctrlAddress, hostNames, provided, log } = options
  await using db = openDatabase(databaseUrl, 'pki', { max: 2 })
  await using changeLog = await openChangeLog(db, noBus, log)
  const now = new Date()
  const rules = { hosts: hostsAt([address, ctrlAddress], hostNames), tokens: undefined }
  const context = ownContext(new AbortController().signal)
  if (provided) {
    const { paths, tokenKeyRules } = provided
    const hosts = advertisedHosts(address, ctrlAddress)
    await importProvidedKeys(
      { changeLog, keySecret, tokenKeyRules, context, hosts, log },
      providedSources(paths),
    )
  }
  await checkKeys({ changeLog, keySecret, rules, log }, context, now)
  return { caPem: (await readKeyring(db, keySecret, now)).bundle.join('') }
}
