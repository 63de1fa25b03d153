import {
  endWithMachine,
  ForeignDatabase,
  migrationsIn,
  requireOwnKeys,
  type ServiceSchema,
  stateOf,
  withClient,
} from '@overlay/store/postgres/migrate'
import {
  prepareAndMigrate as migrateAt,
  migrationsAt,
  services,
} from '@overlay/store/postgres/prepare-and-migrate'
import type { Secrets } from '../home/secrets.js'
import { projectRoot } from '../system/project-root.js'

export { services }
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

/** The URL of the owner's database for the role of a service. */
export function roleUrl(ownerUrl: string, service: Service, secrets: Parameters<typeof rolesIn>[1]): string {
  const { role, password } = rolesIn(ownerUrl, secrets)[service]
  const url = new URL(ownerUrl)
  url.username = encodeURIComponent(role)
  url.password = encodeURIComponent(password)
  return url.href
}

/**
 * For commands that write into a schema and do not migrate it. Fails unless the database belongs to the home with these
 * secrets, and the schema is that of this release or of the next one.
 */
export async function requireOwnSchema(
  ownerUrl: string,
  schema: Service,
  { keySecrets }: Pick<Secrets, 'keySecrets'>,
): Promise<void> {
  await explainForeign(() => requireOwnKeys(ownerUrl, keySecrets.pki))
  const defined = await migrationsIn(migrationsOf(schema))
  const { run, missing } = await withClient(ownerUrl, (client) => stateOf(client, schema, defined))
  if (missing.length > 0)
    throw new Error(
      `schema ${schema} is at ${run.at(-1) ?? 'nothing'}, this program requires ${missing.at(-1)}: start the product with this program first`,
    )
}

export const migrationsOf = (schema: string): readonly string[] => migrationsAt(projectRoot, schema)

/**
 * Prepares the database of a home as its owner, before the services start. Throws if the database belongs to another
 * home, and leaves it alone then.
 */
export async function prepareAndMigrate(
  ownerUrl: string,
  schemas: readonly ServiceSchema[],
  warn: (line: string) => void = () => undefined,
  keySecret?: string,
): Promise<void> {
  await explainForeign(() =>
    migrateAt(projectRoot, ownerUrl, schemas, {
      keySecret,
      onLocked: (schema) => warn(`waiting for a lock of schema ${schema}, of pg_dump or of another start`),
    }),
  )
}

/** Runs work that refuses the database of another home. Its error says what to do. */
async function explainForeign(work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (err) {
    if (!(err instanceof ForeignDatabase)) throw err
    throw new Error(
      'the database belongs to another installation, and nothing was changed: set OVERLAY_HOME to the directory of that installation, or DATABASE_URL to another database',
    )
  }
}

/**
 * Runs the first steps of a start while no other start of this database is at them: the first one writes keys into an
 * empty database, by which others recognize whose it is.
 */
export const whileOnlyStart = <T>(
  ownerUrl: string,
  warn: (line: string) => void,
  work: () => Promise<T>,
): Promise<T> =>
  withClient(ownerUrl, async (client) => {
    await endWithMachine(client)
    const lock = `hashtextextended('first steps of a start', 0)`
    const { rows } = await client.query<{ locked: boolean }>(`select pg_try_advisory_lock(${lock}) as locked`)
    if (!rows[0]?.locked) {
      warn('waiting for another start with this database')
      await client.query(`select pg_advisory_lock(${lock})`)
    }
    return await work()
  })
