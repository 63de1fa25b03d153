import { withClient } from './client.js'
import { unseal } from './seal.js'

/** A database has the keys of another installation. */
export class ForeignDatabase extends Error {
  constructor(cause: unknown) {
    super('the database belongs to another installation: its keys cannot be read with this key secret', {
      cause,
    })
  }
}

/**
 * Throws ForeignDatabase unless the private keys that pki keeps in this database open with its secret. A database without
 * keys belongs to no installation yet.
 */
export async function requireOwnKeys(ownerUrl: string, keySecret: string): Promise<void> {
  await withClient(ownerUrl, async (client) => {
    const found = await client.query<{ exists: boolean }>(
      `select to_regclass('pki.key') is not null as exists`,
    )
    if (!found.rows[0]?.exists) return
    const { rows } = await client.query<{ id: string; private_key: string }>(
      'select id, private_key from pki.key where private_key is not null',
    )
    try {
      for (const { id, private_key } of rows) unseal(keySecret, id, private_key)
    } catch (err) {
      throw new ForeignDatabase(err)
    }
  })
}
