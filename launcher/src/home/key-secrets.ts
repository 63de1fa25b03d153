import { type Manifest, storedRows } from '@overlay/maintenance/snapshot'
import { unseal } from '@overlay/store/postgres'
import type { Secrets } from './secrets.js'

/** Fails unless the secrets open the private keys and second factors of a snapshot, which stay encrypted in it. */
export async function requireKeySecrets(
  directory: string,
  manifest: Manifest,
  { keySecrets }: Pick<Secrets, 'keySecrets'>,
): Promise<void> {
  // the private key of an operator's root is elsewhere
  for await (const { id, private_key } of storedRows(directory, manifest, 'pki', 'key'))
    if (typeof private_key === 'string') unseal(keySecrets.pki, id ?? '', private_key)
  const factors = storedRows(directory, manifest, 'identity', 'second_factor')
  for await (const { identity_id, sealed } of factors)
    unseal(keySecrets.identity, identity_id ?? '', sealed ?? '')
}
