import { join } from 'node:path'
import type { Service } from '@overlay/model'
import { type MigrateOptions, migrate, migrationFolders } from './migrate.js'
import { requireOwnKeys } from './require-own-keys.js'
import { prepareSchemas, type ServiceSchema } from './schemas.js'

/** The services that have a schema. */
export const services = ['identity', 'pki', 'policy', 'sessions'] as const satisfies readonly Service[]

/** The folders of the migrations of a service, in a checkout or an image. */
export const migrationsAt = (root: string, service: string): readonly string[] =>
  migrationFolders(join(root, 'services', service, 'migrations'))

export interface PrepareOptions extends Pick<MigrateOptions, 'onLocked'> {
  /** Of pki. Nothing is written into a database whose keys it does not open. */
  readonly keySecret?: string | undefined
}

/**
 * Prepares the database as its owner, before the services start. Idempotent, and may run in several processes at once.
 * @param root the folder of the checkout or of the image
 */
export async function prepareAndMigrate(
  root: string,
  ownerUrl: string,
  schemas: readonly ServiceSchema[],
  { keySecret, ...options }: PrepareOptions = {},
): Promise<void> {
  if (keySecret !== undefined) await requireOwnKeys(ownerUrl, keySecret)
  await prepareSchemas(ownerUrl, schemas)
  await Promise.all(
    schemas.map(({ schema }) => migrate(ownerUrl, schema, migrationsAt(root, schema), options)),
  )
}
