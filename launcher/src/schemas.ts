import { join } from 'node:path'
import {
  migrate,
  migrationFolders,
  prepareSchemas,
  type ServiceSchema,
} from '@overlay/platform/postgres/migrate'
import { projectRoot } from './project-root.js'

export const services = ['identity', 'pki', 'policy', 'sessions'] as const
export type Service = (typeof services)[number]

/** Roles belong to the whole cluster, which may have databases of several installations. */
export const schemaOf = (service: Service, password: string, database: string): ServiceSchema => ({
  schema: service,
  role: `${database}_${service}`,
  password,
})

/** The schema and the role of each service in the database that the URL names. */
export function rolesIn(
  ownerUrl: string,
  { rolePasswords }: { readonly rolePasswords: Readonly<Record<Service, string>> },
): Record<Service, ServiceSchema> {
  const { pathname, username } = new URL(ownerUrl)
  const database = decodeURIComponent(pathname.slice(1) || username) // as the driver does
  const roles = services.map((service) => [service, schemaOf(service, rolePasswords[service], database)])
  return Object.fromEntries(roles)
}

export const migrationsOf = (schema: string): readonly string[] =>
  migrationFolders(join(projectRoot, 'services', schema, 'migrations'))

/** Prepares the database as its owner, before the services start. */
export async function prepareAndMigrate(ownerUrl: string, schemas: readonly ServiceSchema[]): Promise<void> {
  await prepareSchemas(ownerUrl, schemas)
  await Promise.all(schemas.map(({ schema }) => migrate(ownerUrl, schema, migrationsOf(schema))))
}
