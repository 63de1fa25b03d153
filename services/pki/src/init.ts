import { ownContext } from '@overlay/rpc'
import { noBus, openChangeLog } from '@overlay/store/change-log'
import { openDatabase } from '@overlay/store/postgres'
import type { Logger } from 'pino'
import type { TokenKeyRules } from './domain/token-key-plan.js'
import { advertisedHosts, checkKeys, hostsAt } from './keys/check-keys.js'
import { readKeyring } from './keys/keyring.js'
import { refuseOtherTrustDomain, trustDomainIn } from './keys/trust-domain.js'
import { importProvidedKeys } from './provided-keys/import-keys.js'
import { type ProvidedKeyPaths, providedSources } from './provided-keys/key-sources.js'
import { readKeys } from './store/keys.js'

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
  /** Of a new network. Absent: from the keys that are provided, otherwise random. */
  readonly trustDomain?: string | undefined
  readonly log: Logger
}

/** Adds the keys that the operator provides, and creates missing keys and certificates. Processes may call it at the same time. */
export async function initPki(options: InitOptions): Promise<{ readonly caPem: string }> {
  const { databaseUrl, keySecret, address, ctrlAddress, hostNames, provided, trustDomain, log } = options
  await using db = openDatabase(databaseUrl, 'pki', { max: 2 })
  await using changeLog = await openChangeLog(db, noBus, log)
  const now = new Date()
  refuseOtherTrustDomain(trustDomain, trustDomainIn(await readKeys(db)))
  const rules = { hosts: hostsAt([address, ctrlAddress], hostNames), tokens: undefined }
  const context = ownContext(new AbortController().signal)
  if (provided) {
    const { paths, tokenKeyRules } = provided
    const hosts = advertisedHosts(address, ctrlAddress)
    await importProvidedKeys(
      { changeLog, keySecret, tokenKeyRules, context, hosts, trustDomain, log },
      providedSources(paths),
    )
  }
  await checkKeys({ changeLog, keySecret, rules, trustDomain, log }, context, now)
  return { caPem: (await readKeyring(db, keySecret, now)).bundle.join('') }
}
