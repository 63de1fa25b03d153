import { noBus, openChangeLog } from '@overlay/platform/change-log'
import { openDatabase } from '@overlay/platform/postgres'
import { splitAddress } from '@overlay/platform/process'
import { ownContext } from '@overlay/rpc'
import type { Logger } from 'pino'
import { servedHosts } from './domain/hosts.js'
import { ensureKeys } from './keys/ensure-keys.js'
import { readKeyring } from './keys/keyring.js'

export interface InitOptions {
  readonly databaseUrl: string
  /** Encrypts private keys at rest. */
  readonly keySecret: string
  /** Advertised `host:port` of the APIs. */
  readonly address: string
  /** Further names under which gateways are reached. */
  readonly hostNames?: readonly string[]
  readonly log: Logger
}

/** Makes keys and certificates that are missing. Any number of processes may call it at once. */
export async function initPki({
  databaseUrl,
  keySecret,
  address,
  hostNames = [],
  log,
}: InitOptions): Promise<{ readonly caPem: string }> {
  await using db = openDatabase(databaseUrl, 'pki', { max: 2 })
  await using changeLog = await openChangeLog(db, noBus, log)
  const now = new Date()
  const hosts = servedHosts(splitAddress(address).host, hostNames)
  const made = await ensureKeys(changeLog, ownContext(new AbortController().signal), {
    secret: keySecret,
    hosts,
    now,
  })
  if (made) log.info({ hosts }, 'keys and certificates made')
  return { caPem: (await readKeyring(db, keySecret, now)).bundle.join('') }
}
